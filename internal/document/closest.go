package document

// Closest returns the known word nearest to s by edit distance (insert, delete,
// replace, swap of neighbours), or "" when none is within a third of its length, and
// at least one edit is always allowed.
func Closest(s string, known []string) string {
	best, bestDist := "", 1<<30
	for _, k := range known {
		if len(k) > 200 || len(s) > 200 {
			continue
		}
		limit := max(1, max(len(s), len(k))/3)
		if d := distance(s, k); d <= limit && d < bestDist {
			best, bestDist = k, d
		}
	}
	return best
}

// distance is the optimal string alignment distance of two byte strings.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
