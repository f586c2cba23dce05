package sessions

import "syscall"

// networkKinds are the names of network file systems, by the type that statfs returns.
var networkKinds = map[uint32]string{
	0x6969: "NFS", 0x517B: "SMB", 0xFF534D42: "CIFS", 0xFE534D42: "SMB", 0x01021997: "9P", 0x5346414F: "AFS",
	0x00C36400: "Ceph", 0x73757245: "Coda", 0x564C: "NCP", 0x47504653: "GPFS", 0x0BD00BD0: "Lustre",
}

// kindOfNetwork returns the name of the network file system that a directory is on, "" for a local one.
func kindOfNetwork(path string) string {
	var about syscall.Statfs_t
	if syscall.Statfs(path, &about) != nil {
		return "" // opening the directory will report the error
	}
	return networkKinds[uint32(about.Type)]
}
