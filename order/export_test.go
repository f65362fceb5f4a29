package order

// Permute and Key give tests the parts that the specification names.
func Permute(n, key, i uint64) uint64 {
	p := newPermutation(n, key)
	v := p.at(i)
	if p.find(v) != i {
		panic("find is not the inverse of at")
	}
	return v
}

func Key(seed, epoch, stream uint64) uint64 { return key(seed, epoch, stream) }
