package fault

// A Point is where an action leaves the process.
type Point string

// Commands at sites, and files that are put there.
const (
	SiteCheck    Point = "site.check"    // may this be a root?
	SiteBoot     Point = "site.boot"     // claiming a root
	SiteAbandon  Point = "site.abandon"  // giving a claimed root back
	SitePlatform Point = "site.platform" // what packages must be made for
	SiteTest     Point = "site.test"     // is this file there?
	SiteMake     Point = "site.make"     // a folder for an archive
	SitePut      Point = "site.put"      // a program or an archive
	SiteReplace  Point = "site.replace"  // a file of a job that has not ended
	SitePing     Point = "site.ping"     // is the site there?
	SiteExpand   Point = "site.expand"   // a variable of the login
	SiteRelay    Point = "site.relay"    // a program that runs while we speak with it
	SiteSurvey   Point = "site.survey"   // what the site has
	SiteTry      Point = "site.try"      // would it take such a job?
	SiteSubmit   Point = "site.submit"
	SitePoll     Point = "site.poll"
	SiteLost     Point = "site.lost" // what accounting says of jobs that the queue has forgotten
	SiteRead     Point = "site.read" // files of jobs
	SiteCancel   Point = "site.cancel"
	SiteEnd      Point = "site.end" // jobs by the site's own ids
	SiteForget   Point = "site.forget"
	SiteList     Point = "site.list"  // all jobs with our mark
	SiteSweep    Point = "site.sweep" // removing the root
)

// Commands of HTCondor's on pools.
const (
	PoolMaster    Point = "pool.master" // starting one
	PoolConfigure Point = "pool.configure"
	PoolAsk       Point = "pool.ask" // queries, which change nothing
	PoolToken     Point = "pool.token"
	PoolSubmit    Point = "pool.submit"
	PoolChange    Point = "pool.change" // of jobs in the queue
	PoolRemove    Point = "pool.remove"
)

const (
	Download   Point = "download"    // an archive from a mirror
	StoreWrite Point = "store.write" // a transaction; its answer cannot be lost
)

// Points are all of them, in order.
var Points = []Point{
	SiteCheck, SiteBoot, SiteAbandon, SitePlatform, SiteTest, SiteMake, SitePut, SiteReplace, SitePing, SiteExpand,
	SiteRelay, SiteSurvey, SiteTry, SiteSubmit, SitePoll, SiteLost, SiteRead, SiteCancel, SiteEnd, SiteForget, SiteList,
	SiteSweep, PoolMaster, PoolConfigure, PoolAsk, PoolToken, PoolSubmit, PoolChange, PoolRemove, Download, StoreWrite,
}
