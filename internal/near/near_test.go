package near

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	names := []string{"open", "high", "low", "close", "volume", "Close2"}
	for asked, want := range map[string][]string{
		"clsoe":   {"close"},           // two letters swapped
		"CLOSE":   {"close", "Close2"}, // another case is no edit, one letter less is one
		"volum":   {"volume"},
		"volumes": {"volume"},
		"hihg":    {"high"},
		"lwo":     {"low"},
		"xyz":     nil,
		"":        nil,
	} {
		require.Equal(t, want, Names(asked, names), asked)
	}
}
