package servers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
)

// dialError returns the net package's error for a dial that the system refused.
func dialError(errno error) error {
	return fmt.Errorf("dialing: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)})
}

// TestReasonOfDials: each error of a dial has one reason, with a sentence about what is wrong and one about what to do.
func TestReasonOfDials(t *testing.T) {
	t.Parallel()
	at := func(address string) Spec {
		s := Spec{Name: "bigpc"}
		s.About.Address, s.About.Start = address, "codex app-server --listen ws://127.0.0.1:4500"
		return s
	}
	far, here, unix := at("ws://10.0.0.5:4500"), at("ws://127.0.0.1:4500"), at("unix:/run/codex.sock")
	key := at("https://api.openai.com")
	child := at("codex app-server")
	child.Program, child.EndsWithUs, child.About.Start = "codex", true, "codex app-server"
	key.Credential.Name = "key"
	start := "codex app-server --listen ws://127.0.0.1:4500"
	const byItself = "Switchboard starts it again by itself; if that does not help, run it in a terminal, and mend what it says: codex app-server."
	for _, row := range []struct {
		spec      Spec
		err       error
		reason    handoff.Reason
		why, next string
	}{
		{far, dialError(syscall.ECONNREFUSED), handoff.ReasonNotRunning, "nothing is listening there", "Start its agent server there: " + start + "."},
		{here, dialError(syscall.ECONNREFUSED), handoff.ReasonTunnelDown, "nothing is listening there, neither its agent server nor a tunnel to it",
			"Start the tunnel, or its agent server there: " + start + " (behind a tunnel, with the port that it leads to)."},
		{here, io.ErrUnexpectedEOF, handoff.ReasonTunnelEmpty, "what listens there ends the connection at once, as a tunnel does that leads nowhere",
			"Start its agent server at the other end: " + start + " (with the port that the tunnel leads to)."},
		{far, io.EOF, handoff.ReasonCut, "it ends the connection at once", "Look at the log of its agent server, and start that again: " + start + "."},
		{far, dialError(syscall.ECONNRESET), handoff.ReasonCut, "", ""},
		{child, io.EOF, handoff.ReasonCut, "it ends the connection at once", byItself},
		{child, context.DeadlineExceeded, handoff.ReasonSilent, "it takes the connection and does not answer", byItself},
		{child, errors.New("odd"), handoff.ReasonUnknown, "it cannot be reached", byItself},
		{unix, &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)}, handoff.ReasonNotRunning, "nothing is listening there", ""},
		{unix, &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}, handoff.ReasonNotAllowed, "", ""},
		{far, dialError(syscall.EHOSTUNREACH), handoff.ReasonNoRoute, "", ""},
		{far, dialError(syscall.ENETUNREACH), handoff.ReasonNoRoute, "", ""},
		{far, dialError(syscall.ETIMEDOUT), handoff.ReasonAsleep, "it is asleep or offline since 21:40", "Wake it, or look whether it is on the network; it is found again by itself."},
		{far, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, handoff.ReasonAsleep, "", ""},
		{far, context.DeadlineExceeded, handoff.ReasonSilent, "it takes the connection and does not answer", ""},
		{far, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, handoff.ReasonSilent, "", ""},
		{far, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "bigpc.local", IsNotFound: true}}, handoff.ReasonNameUnknown,
			"its name is not known on this network", "Correct its address, or connect to the network or VPN that knows it."},
		{far, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", IsTimeout: true}}, handoff.ReasonAsleep, "", ""},
		{far, x509.UnknownAuthorityError{}, handoff.ReasonCertificate, "its certificate does not hold: x509: certificate signed by unknown authority", ""},
		{far, &tls.CertificateVerificationError{Err: errors.New("expired")}, handoff.ReasonCertificate, "", ""},
		{far, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, handoff.ReasonNoTLS, "it takes no encrypted connections",
			"Correct the port of its address, ws://10.0.0.5:4500, or put TLS in front of it."},
		{far, &exec.Error{Name: "codex", Err: exec.ErrNotFound}, handoff.ReasonProgramMissing, "", ""},
		{far, &fs.PathError{Op: "fork/exec", Err: syscall.ENOENT}, handoff.ReasonUnknown, "it cannot be reached", ""},
		{far, RefusalOf("bigpc", 401, "missing websocket bearer token"), handoff.ReasonTokenRefused,
			"it did not accept Switchboard's token", "Correct token_file or token_env of bigpc."},
		{key, RefusalOf("bigpc", 403, ""), handoff.ReasonTokenRefused, "it did not accept Switchboard's key", "Correct key_file or key_env of bigpc."},
		{far, RefusalOf("bigpc", 400, "Client sent an HTTP request to an HTTPS server."), handoff.ReasonPlaintextRefused,
			"it takes encrypted connections alone", "Begin its address with wss:// (or https://)."},
		{far, RefusalOf("bigpc", 404, ""), handoff.ReasonStranger, "something else answers there: HTTP 404", "Correct its address, ws://10.0.0.5:4500."},
		{far, outdated, handoff.ReasonOutdated, "it runs codex 0.140; 0.150 is needed", "Update it there, and start its agent server again."},
		{far, handoff.Fault(handoff.CodeOutdated, "bigpc speaks version 2", ""), handoff.ReasonOutdated, "bigpc speaks version 2", ""},
		{far, handoff.Fault(handoff.CodeOverloaded, "bigpc", ""), "", "bigpc has too much to do right now.", "Try again in a moment; nothing was started."},
		{far, errors.New("odd"), handoff.ReasonUnknown, "it cannot be reached", ""},
	} {
		now := time.Now()
		since := time.Date(now.Year(), now.Month(), now.Day(), 21, 40, 0, 0, time.Local)
		got := row.spec.Explain(DialFault("bigpc", row.err), since)
		if got.Reason != row.reason || row.why != "" && got.Why != row.why || row.next != "" && got.NextStep() != row.next || got.Why == "" {
			t.Errorf("%v: %q, %q, %q", row.err, got.Reason, got.Why, got.NextStep())
		}
	}
}

// TestReasonOfAHandshake: the reason of a failed handshake depends on the program at the other end.
func TestReasonOfAHandshake(t *testing.T) {
	t.Parallel()
	gone := handoff.Fault(handoff.CodeUnreachable, "bigpc", "EOF")
	if got := HandshakeFault(gone, io.EOF, new("its program ended: exit status 3")); got.Reason != handoff.ReasonProgramEnded || got.Detail != "its program ended: exit status 3" {
		t.Errorf("a program: %+v", got)
	}
	if got := HandshakeFault(gone, io.EOF, nil); got.Reason != handoff.ReasonCut {
		t.Errorf("a machine: %+v", got)
	}
	if got := HandshakeFault(outdated, io.EOF, nil); got != outdated {
		t.Errorf("what says it already: %+v", got)
	}
}
