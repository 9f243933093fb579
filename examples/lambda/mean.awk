# Averages the tables of the control experiments. Output: length, mean number of different words.
{
	sum[$1] += $2
	rows[$1]++
	if ($1 > longest) longest = $1
}
END { for (k = 1; k <= longest; k++) printf "%d %.1f\n", k, sum[k] / rows[k] }
