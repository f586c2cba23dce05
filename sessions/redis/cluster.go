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

// isCluster reports whether a URL is one of a Cluster: it names other nodes, and nothing that Sentinels know.
func isCluster(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Query().Has("addr") && !u.Query().Has("master_name")
}

// clusterOptions are those of a Cluster, whose nodes are asked in the way that [options] sets for one Redis.
func clusterOptions(address string) (*goredis.ClusterOptions, error) {
	o, err := goredis.ParseClusterURL(address)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(address); err != nil || strings.Trim(u.Path, "/") != "" && u.Path != "/0" {
		return nil, errors.New("a Cluster has no other databases")
	}
	o.Addrs = slices.Compact(o.Addrs) // who knows one name writes it twice
	o.Protocol = 2
	o.MaxRedirects = maxRedirects
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialWithin, replyWithin, replyWithin
	o.PoolSize, o.PoolTimeout = poolSize, replyWithin
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false // a replica may be behind
	o.DisableRoutingPolicies = true                                     // each command of ours is for one node
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

// maxRedirects is how often a command follows a slot to another node.
const maxRedirects = 3

// once is a hook at the nodes of a Cluster. Its client asks again where the answer of a node is lost, after which a
// command may count twice; from once it learns only that no node answered. Then it looks who has the slots by now.
type once struct{ cluster *goredis.ClusterClient }

// lost is an error of a node that did not answer. It hides from the client what kind of error that was.
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

// ProcessPipelineHook implements [goredis.Hook]. What we send in pipelines may be repeated.
func (o once) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, all []goredis.Cmder) error {
		err := next(ctx, all)
		if unanswered(err) {
			o.cluster.ReloadState(ctx)
		}
		return err
	}
}

// unanswered reports whether an error is of a node that did not answer.
func unanswered(err error) bool {
	return err != nil && !errors.Is(err, goredis.ErrClosed) && waitable(err)
}

// masters runs a function at each node that takes writes, at the same time at those of a Cluster.
func (e *engine) masters(ctx context.Context, do func(context.Context, *goredis.Client) error) error {
	switch c := e.client.(type) {
	case *goredis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *goredis.Client:
		return do(ctx, c)
	}
	return unexpected("client")
}

// master returns the node that takes writes of a key.
func (e *engine) master(ctx context.Context, key string) (*goredis.Client, error) {
	switch c := e.client.(type) {
	case *goredis.ClusterClient:
		return c.MasterForKey(ctx, key)
	case *goredis.Client:
		return c, nil
	}
	return nil, unexpected("client")
}

// needsCluster gives an error of a Redis that is a node of a Cluster, and was not named as one, as one that says so.
func (e *engine) needsCluster(err error) error {
	if _, ok := e.client.(*goredis.Client); ok &&
		(goredis.HasErrorPrefix(err, "MOVED") || goredis.HasErrorPrefix(err, "CROSSSLOT")) {
		return fmt.Errorf("%s is a node of a Cluster: name others too, redis://host:port?addr=host:port", e.where)
	}
	return err
}

// needsPeers refuses a Cluster to a life that would use it alone: the epoch of its lease is one key, and what it writes
// of each caller is elsewhere, so that nothing would compare both.
func (e *engine) needsPeers() error {
	if _, cluster := e.client.(*goredis.ClusterClient); !cluster || e.shared {
		return nil
	}
	return fmt.Errorf("%s is for instances with peers, also where there is but one", e.where)
}
