package sandbox

import (
	"fmt"
	"maps"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// families are the address families for which a command may make sockets: its own network, and questions to the kernel
// about it. A Unix socket could reach a server that listens in a visible directory, so only socket pairs are allowed.
var families = []uint64{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} // Set once

// conditional are the system calls that are allowed only with certain arguments, or never because they make sockets by
// other ways. Set once.
var conditional = []string{"socket", "socketpair", "socketcall",
	"io_uring_setup", "io_uring_enter", "io_uring_register"}

// restrictCalls limits the system calls of this thread and of the processes it starts. Calls that are not on a list,
// such as those of another architecture or a newer kernel, are refused.
func restrictCalls() error {
	known, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	unconditional := slices.DeleteFunc(slices.Sorted(maps.Keys(known.SyscallNames)),
		func(name string) bool { return slices.Contains(conditional, name) })
	var conditions []seccomp.NameWithConditions
	for _, family := range families {
		conditions = append(conditions, seccomp.NameWithConditions{Name: "socket",
			Conditions: seccomp.ArgumentConditions{{Operation: seccomp.Equal, Value: family}}})
	}
	// The two ends of a connected pair reach nobody else. Datagram sockets, whose type has this bit, could send
	// elsewhere.
	conditions = append(conditions, seccomp.NameWithConditions{Name: "socketpair", Conditions: seccomp.ArgumentConditions{
		{Operation: seccomp.Equal, Value: unix.AF_UNIX}, {Argument: 1, Operation: seccomp.BitsNotSet, Value: unix.SOCK_DGRAM},
	}})
	// The conditional calls come last: after them the library has an argument loaded instead of the number of the
	// call.
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{{Names: unconditional, Action: seccomp.ActionAllow},
			{NamesWithCondtions: conditions, Action: seccomp.ActionAllow}},
	}})
}
