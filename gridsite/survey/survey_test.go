package survey

import "testing"

func TestParseDF(t *testing.T) {
	t.Parallel()
	const head = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n"
	for line, want := range map[string]int64{
		"/dev/vda 264212084 21057484  74443780      23% /":        72699,
		"fs1:/home dir 100 90 2048 98% /home/with a blank":        2,
		"tmpfs 8 8 0 100% /full":                                  0,
		"/dev/x 100 105 -5 105% /over":                            0,
		"proc 0 0 0 - /proc":                                      0,
		"/dev/x 99999999999999999999 5 99999999999999999999 1% /": -1,
		"df: /x: No such file or directory":                       -1,
		"":                                                        -1,
	} {
		_, free, err := parseDF(head + line)
		if want < 0 != (err != nil) || err == nil && free != want {
			t.Errorf("parseDF(%q) = %d, %v; want %d", line, free, err, want)
		}
	}
}

func TestParseQuota(t *testing.T) {
	t.Parallel()
	const head = "Disk quotas for user ada (uid 1000): \n     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
	for _, tt := range []struct {
		out  string
		left int64
		ok   bool
		bad  bool
	}{
		{out: head + "     /dev/a  3076  10240  20480  0  2  0  0  0\n", left: 17404, ok: true},
		{out: head + "     /dev/a  3076  10240  0  0  2  0  0  0\n", left: 7164, ok: true},
		{out: head + "     /dev/a  20480*  10240  20480  1700000000  2*  1  1  0\n", left: 0, ok: true},
		{out: head + "     /dev/b  3076  10240  20480  0  2  0  0  0\n"},
		{out: head + "     /dev/a  3076  0  0  0  2  100  100  0\n"},
		{out: "Disk quotas for user ada (uid 1000): none\nDisk quotas for group ada (gid 1000): none\n"},
		{out: head + "     /dev/a  3076  10240  20480  0  2  0  0  0\nDisk quotas for group them (gid 9): \n" +
			"     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n     /dev/a  20000  10240  20480  0  2  0  0  0\n", left: 480, ok: true},
		{out: "quota: error while getting quota\n", bad: true},
		{out: head + "     /dev/a  3076  10240  20480  6days  2  0  0\n", bad: true},
	} {
		left, ok, err := parseQuota(tt.out, "/dev/a")
		if (err != nil) != tt.bad || ok != tt.ok || ok && left != tt.left {
			t.Errorf("parseQuota(%q) = %d, %v, %v; want %d, %v", tt.out, left, ok, err, tt.left, tt.ok)
		}
	}
}
