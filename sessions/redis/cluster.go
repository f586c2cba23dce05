package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// isCluster reports whether a URL names a Cluster: it has addresses of other nodes and no master_name of Sentinels.
func isCluster(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Query().Has("addr") && !u.Query().Has("master_name")
}

// clusterOptions parses the URL of a Cluster, and sets for its nodes what [options] sets for one Redis.
func clusterOptions(address string) (*goredis.ClusterOptions, error) {
	o, err := goredis.ParseClusterURL(address)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(address); err != nil || strings.Trim(u.Path, "/") != "" && u.Path != "/0" {
		return nil, errors.New("a Cluster has no other databases")
	}
	o.Addrs = slices.Compact(o.Addrs) // a user who knows only one node writes it twice
	o.Protocol = 2
	o.MaxRedirects = maxRedirects
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialWithin, replyWithin, replyWithin
	o.PoolSize, o.PoolTimeout = poolSize, replyWithin
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false // a replica may lag behind
	o.DisableRoutingPolicies = true                                     // each command of ours is for one node
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

// maxRedirects is how often a command follows a slot that moved to another node.
const maxRedirects = 3

// once is a hook at the nodes of a Cluster that keeps the client from repeating commands. The client would repeat a
// command whose answer was lost, and the command might count twice. once hides the kind of the error, so that the
// client does not repeat, and has it look up which node has which slot by now.
type once struct{ cluster *goredis.ClusterClient }

// lost is the error of a node that did not answer, as text alone: the client does not repeat after an unknown error.
type lost struct{ text string }

func (l lost) Error() string { return l.text }

// DialHook implements [goredis.Hook].
func (once) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessHook implements [goredis.Hook].
func (o once) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if !unanswered(err) {
			return err
		}
		o.cluster.ReloadState(ctx)
		err = lost{err.Error()}
		cmd.SetErr(err)
		return err
	}
}

// ProcessPipelineHook implements [goredis.Hook]. Our pipelines may be repeated, so the error stays as it is.
func (o once) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, all []goredis.Cmder) error {
		err := next(ctx, all)
		if unanswered(err) {
			o.cluster.ReloadState(ctx)
		}
		return err
	}
}

// unanswered reports whether an error means that a node did not answer.
func unanswered(err error) bool {
	return err != nil && !errors.Is(err, goredis.ErrClosed) && waitable(err)
}

// masters calls a function for each master: concurrently for those of a Cluster.
func (e *engine) masters(ctx context.Context, do func(context.Context, *goredis.Client) error) error {
	switch c := e.client.(type) {
	case *goredis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *goredis.Client:
		return do(ctx, c)
	}
	return unexpected("client")
}

// master returns the master of a key.
func (e *engine) master(ctx context.Context, key string) (*goredis.Client, error) {
	switch c := e.client.(type) {
	case *goredis.ClusterClient:
		return c.MasterForKey(ctx, key)
	case *goredis.Client:
		return c, nil
	}
	return nil, unexpected("client")
}

// needsCluster adds what to do to the error of a Redis that is a node of a Cluster but was configured as a single
// Redis.
func (e *engine) needsCluster(err error) error {
	if _, ok := e.client.(*goredis.Client); ok &&
		(goredis.HasErrorPrefix(err, "MOVED") || goredis.HasErrorPrefix(err, "CROSSSLOT")) {
		return fmt.Errorf("%s is a node of a Cluster: name others too, redis://host:port?addr=host:port", e.where)
	}
	return err
}

// needsPeers refuses a Cluster unless instances share it. A process alone compares the epoch of its lease, a single
// key, with each write; the data of a caller may be in another slot, which a script cannot reach.
func (e *engine) needsPeers() error {
	if _, cluster := e.client.(*goredis.ClusterClient); !cluster || e.shared {
		return nil
	}
	return fmt.Errorf("%s is for instances with peers, also where there is but one", e.where)
}
