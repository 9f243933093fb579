package fault

// A Point is a place in the code that performs an action.
type Point string

// Commands at sites, and files that are copied there.
const (
	SiteCheck    Point = "site.check"    // whether a directory may be used as a root
	SiteBoot     Point = "site.boot"     // claiming a root
	SiteAbandon  Point = "site.abandon"  // releasing a claimed root
	SitePlatform Point = "site.platform" // the platform that packages must be built for
	SiteTest     Point = "site.test"     // whether a file exists
	SiteMake     Point = "site.make"     // a folder for an archive
	SitePut      Point = "site.put"      // a program or an archive
	SiteReplace  Point = "site.replace"  // a file of a job that has not ended
	SitePing     Point = "site.ping"     // whether the site can be reached
	SiteExpand   Point = "site.expand"   // a variable of the login
	SiteRelay    Point = "site.relay"    // a program that runs while corrald communicates with it
	SiteSurvey   Point = "site.survey"   // the site's resources
	SiteTry      Point = "site.try"      // whether the site would accept a job
	SiteSubmit   Point = "site.submit"
	SitePoll     Point = "site.poll"
	SiteLost     Point = "site.lost" // accounting records of jobs that the queue has forgotten
	SiteRead     Point = "site.read" // files of jobs
	SiteCancel   Point = "site.cancel"
	SiteEnd      Point = "site.end" // jobs by the site's own ids
	SiteForget   Point = "site.forget"
	SiteList     Point = "site.list"  // all jobs with Corral's mark
	SiteSweep    Point = "site.sweep" // removing the root
)

// HTCondor's commands for pools.
const (
	PoolMaster    Point = "pool.master" // starting a master
	PoolConfigure Point = "pool.configure"
	PoolAsk       Point = "pool.ask" // queries, which change nothing
	PoolToken     Point = "pool.token"
	PoolSubmit    Point = "pool.submit"
	PoolChange    Point = "pool.change" // changing jobs in the queue
	PoolRemove    Point = "pool.remove"
)

const (
	Download   Point = "download"    // an archive from a mirror
	StoreWrite Point = "store.write" // a transaction; its answer cannot be lost
)

// Points lists all points, in order.
var Points = []Point{
	SiteCheck, SiteBoot, SiteAbandon, SitePlatform, SiteTest, SiteMake, SitePut, SiteReplace, SitePing, SiteExpand,
	SiteRelay, SiteSurvey, SiteTry, SiteSubmit, SitePoll, SiteLost, SiteRead, SiteCancel, SiteEnd, SiteForget, SiteList,
	SiteSweep, PoolMaster, PoolConfigure, PoolAsk, PoolToken, PoolSubmit, PoolChange, PoolRemove, Download, StoreWrite,
}
