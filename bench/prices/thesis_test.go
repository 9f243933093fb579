package prices_test

import (
	"math"
	"testing"
	"time"

	"github.com/corral-pilot/corral/bench/prices"
	"github.com/corral-pilot/corral/plan/cost"
)

const gb, mb = 1 << 30, 1 << 20

// money returns a function that stops the test at an error.
func money(t *testing.T) func(m cost.Money, err error) cost.Money {
	return func(m cost.Money, err error) cost.Money {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func cents(t *testing.T, what string, got cost.Money, want string) {
	t.Helper()
	if got.Round(2) != want {
		t.Errorf("%s costs %s, want %s", what, got, want)
	}
}

func rate(t *testing.T, s string) cost.Rate {
	t.Helper()
	r, err := cost.ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestThesisTables reproduces the tables of the thesis's chapter 4 to the cent.
func TestThesisTables(t *testing.T) {
	t.Parallel()
	t.Run("4.4, transfer for a workflow", transfer)
	t.Run("4.7 and 4.8, a service for mosaics", mosaics)
	t.Run("4.9, periodograms", periodograms)
	t.Run("4.5 and 4.6, ratios", ratios)
	t.Run("images and volumes", images)
}

func transfer(t *testing.T) {
	ec2 := prices.Published()["ec2-2009"]
	for _, c := range []struct {
		app           string
		in, out, logs float64 // MB; the logs are also transferred out
		want          [3]string
	}{
		{"Montage", 4291, 7970, 40, [3]string{"0.42", "1.32", "1.75"}},
		{"Broadband", 4109, 159, 5.5, [3]string{"0.40", "0.03", "0.43"}},
		{"Epigenome", 1843, 299, 3.3, [3]string{"0.18", "0.05", "0.23"}},
	} {
		in, out, logs := int64(c.in*mb), int64(c.out*mb), int64(c.logs*mb)
		cents(t, c.app+" in", money(t)(ec2.Transfer(in, 0)), c.want[0])
		cents(t, c.app+" out", money(t)(ec2.Transfer(0, out)), c.want[1])
		cents(t, c.app, money(t)(ec2.Transfer(in, out+logs)), c.want[2])
	}
}

// 36,000 mosaics in three years, from 10 TB of images.
func mosaics(t *testing.T) {
	sum := func(parts ...cost.Money) (total, each cost.Money) {
		for _, p := range parts {
			total = total.Plus(p)
		}
		return total, total / 36_000
	}
	const dollars = 1_000_000
	total, each := sum(12_000*dollars, 5_000*dollars, 6_000*dollars)
	cents(t, "our own server", total, "23000.00")
	cents(t, "a mosaic of it", each, "0.64")

	ec2 := prices.Published()["ec2-2009"]
	in := money(t)(ec2.Transfer(10_000*gb, 0))
	volume := money(t)(ec2.EBS(10_000*gb, 36*prices.Month, 0))
	requests := money(t)(ec2.EBS(0, 0, 70_000_000_000))
	cents(t, "transfer", in, "1000.00")
	cents(t, "the volume", volume, "36000.00")
	cents(t, "requests to it", requests, "7000.00")
	total, each = sum(in, volume, 4_500*dollars, requests, 4_200*dollars)
	cents(t, "EC2", total, "52700.00")
	cents(t, "a mosaic of it", each, "1.46")
}

// The table charges the cpu time used; the bill is for 16 machines for whole hours.
func periodograms(t *testing.T) {
	ec2 := prices.Published()["ec2-2010"]
	perCPU := rate(t, "0.085USD/cpu-hour") // an eighth of a c1.xlarge
	for _, c := range []struct {
		name      string
		hours     int     // of cpu time
		wall      float64 // hours
		gigabytes float64
		want      [3]string
		billed    string
	}{
		{"run 1", 1304, 16.5, 105.3, [3]string{"110.84", "15.80", "126.64"}, "184.96"},
		// 106.09 as the sum of rounded parts.
		{"run 2", 1113, 26.8, 76.52, [3]string{"94.61", "11.48", "106.08"}, "293.76"},
		{"run 3", 50019, 448, 3097.87, [3]string{"4251.62", "464.68", "4716.30"}, "4874.24"},
	} {
		used, _ := perCPU.Charge(cost.Holding{CPUs: 1, Held: time.Duration(c.hours) * time.Hour}, cost.Billing{})
		out := money(t)(ec2.Transfer(0, int64(math.Round(c.gigabytes*gb))))
		cents(t, c.name+", cpu time", used, c.want[0])
		cents(t, c.name+", output", out, c.want[1])
		cents(t, c.name, used.Plus(out), c.want[2])

		held := time.Duration(c.wall * float64(time.Hour))
		_, billed := ec2.Rates["c1.xlarge"].Charge(cost.Holding{Hosts: 16, CPUs: 128, Held: held}, hourly)
		cents(t, c.name+", billed", billed, c.billed)
	}
}

var hourly = cost.Billing{Period: time.Hour}

// Changes in percent and R/C, as printed, for moving the submit host into the cloud and for a faster machine type.
var table45 = [][3]float64{
	{-38.55, -8.49, 4.54}, {-22.66, -3.44, 6.58}, {-10.52, 0.66, 15.91}, // Montage on 2, 4, 8 nodes
	{-7.00, 39.50, 0.18}, {-15.42, 5.73, 2.69}, {-16.94, -6.56, 2.58}, // Broadband
	{-11.40, 32.90, 0.35}, {-8.42, 14.47, 0.58}, {1.81, 14.54, 0.12}, // Epigenome
}

var table46 = [][3]float64{
	{-46.3, 2.6, 17.59}, {-41.7, 11.5, 3.64}, {-19.4, 54.0, 0.36},
	{-28.7, 36.3, 0.79}, {-31.6, 30.8, 1.03}, {-36.1, 22.2, 1.62},
	{-38.1, 18.4, 2.07}, {-31.1, 31.7, 0.98}, {-15.9, 60.8, 0.26},
}

func ratios(t *testing.T) {
	beneficial, cheaper := 0, 0
	for i, row := range append(table45, table46...) {
		c := prices.Change{Runtime: row[0] / 100, Cost: row[1] / 100}
		if got := c.Ratio(); math.Abs(got/row[2]-1) > 0.02 && math.Abs(got-row[2]) > 0.01 {
			t.Errorf("ratio of %v and %v = %.3f, want %v", row[0], row[1], got, row[2])
		}
		if v := c.Judge(); i < len(table45) && (v == prices.Better || v == prices.Worth) {
			beneficial++
		}
		if i < len(table45) && c.Cost < 0 {
			cheaper++
		}
	}
	if beneficial != 5 || cheaper != 3 {
		t.Errorf("%d of 9 are worth it and %d cheaper; the thesis says 5 and 3", beneficial, cheaper)
	}
}

func images(t *testing.T) {
	ec2 := prices.Published()["ec2-2009"]
	cents(t, "two images for a month", money(t)(ec2.S3((773+729)*mb, prices.Month, 0, 0)), "0.22")
	cents(t, "4,616 GET and 2,560 PUT", money(t)(ec2.S3(0, 0, 2560, 4616)), "0.03")
	cents(t, "2.2 TB for a month", money(t)(ec2.EBS(22*1024*gb/10, prices.Month, 0)), "225.28")
}
