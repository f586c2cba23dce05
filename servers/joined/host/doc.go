// Package host runs on a machine that joined: it keeps the line to the service, starts and ends the agents there, and
// passes only those requests of the service that the machine's owner allows.
//
// Agents are processes in sessions of their own. They outlive a lost line, the service and this process, which finds
// them again by their sockets; they end when nobody used them for a day, or when the machine leaves.
//
// It must not know the service beyond its key, and trusts it with nothing that the owner's file does not allow.
package host
