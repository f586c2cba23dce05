package sandbox

import (
	"fmt"
	"maps"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// families are the sockets that a command may make: of its own network, and those that ask the kernel about it. A Unix
// socket could reach a server that listens in a directory that the command sees, so there are only pairs of them.
var families = []uint64{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} // Set once

// withheld are calls that are judged by what they are told, and those that would make sockets without being judged.
// Set once
var withheld = []string{"socket", "socketpair", "socketcall", "io_uring_setup", "io_uring_enter", "io_uring_register"}

// restrict takes calls from this thread and what it starts. What is on no list, such as a call of another architecture
// or of a newer kernel, is refused.
func restrict() error {
	known, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	plain := slices.DeleteFunc(slices.Sorted(maps.Keys(known.SyscallNames)),
		func(name string) bool { return slices.Contains(withheld, name) })
	var judged []seccomp.NameWithConditions
	for _, family := range families {
		judged = append(judged, seccomp.NameWithConditions{Name: "socket",
			Conditions: seccomp.ArgumentConditions{{Operation: seccomp.Equal, Value: family}}})
	}
	// Two ends that are connected reach nobody else. Datagrams could be sent elsewhere: their types have this bit.
	judged = append(judged, seccomp.NameWithConditions{Name: "socketpair", Conditions: seccomp.ArgumentConditions{
		{Operation: seccomp.Equal, Value: unix.AF_UNIX}, {Argument: 1, Operation: seccomp.BitsNotSet, Value: unix.SOCK_DGRAM},
	}})
	// The judged ones come last: after them the library compares with an argument, no longer with the call.
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{{Names: plain, Action: seccomp.ActionAllow},
			{NamesWithCondtions: judged, Action: seccomp.ActionAllow}},
	}})
}
