// Package near finds the names that someone may have meant.
package near

// Names returns up to three names like the given one.
func Names(name string, names []string) []string {
	type scored struct {
		name string
		d    int
	}
	var best []scored
	limit := max(1, len(name)/3)
	for _, n := range names {
		if d := distance(name, n, limit); d <= limit {
			best = append(best, scored{n, d})
		}
	}
	var out []string
	for d := 0; d <= limit && len(out) < 3; d++ {
		for _, b := range best {
			if b.d == d && len(out) < 3 {
				out = append(out, b.name)
			}
		}
	}
	return out
}

// distance returns the number of edits between two names, or limit+1 if it is more: letters put in, left out, replaced,
// or two neighbours swapped (optimal string alignment). Case does not count.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if lower(a[i]) == lower(b[j]) {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && lower(a[i]) == lower(b[j-1]) && lower(a[i-1]) == lower(b[j]) {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return min(row[len(b)], limit+1)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
