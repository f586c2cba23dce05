package sandbox

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// families are the address families for which a command may make sockets: its own network, and questions to the kernel
// about it. A Unix socket could reach a server that listens in a visible directory, so only socket pairs are allowed.
var families = []uint64{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} // Set once

// allowed are the system calls that are allowed with any arguments: of files, memory, processes and their own network.
// Not among them are namespaces, mounts, keyrings, io_uring (which makes sockets), userfaultfd, BPF, performance
// counters, file handles, and what administers a machine. Set once.
var allowed = strings.Fields(calls)

//go:embed calls.txt
var calls string

// restrictCalls limits the system calls of this thread and of the processes it starts. What is not listed is refused,
// and so are the calls of another architecture.
func restrictCalls() error {
	known, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	unconditional := slices.DeleteFunc(slices.Clone(allowed), func(name string) bool {
		_, ok := known.SyscallNames[name]
		return !ok // this architecture has none
	})
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
