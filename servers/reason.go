package servers

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"switchboard/handoff"
)

// DialFault returns the error for a server that was not reached, with the reason that follows from the dial's error.
func DialFault(server string, err error) *handoff.Error {
	fault := *handoff.AsError(err)
	if fault.Code == handoff.CodeInternal {
		fault = handoff.Error{Code: handoff.CodeUnreachable, Detail: err.Error(), Reason: ReasonOf(err)}
	}
	if fault.Subject == "" {
		fault.Subject = server
	}
	return &fault
}

// dialReasons are the reasons of errors of the system and of network libraries. The first row that fits counts. Set
// once.
var dialReasons = []struct {
	fits   func(error) bool
	reason handoff.Reason
}{
	{typed[*tls.CertificateVerificationError], handoff.ReasonCertificate},
	{typed[x509.UnknownAuthorityError], handoff.ReasonCertificate},
	{typed[tls.RecordHeaderError], handoff.ReasonNoTLS},
	{func(err error) bool {
		dns, ok := errors.AsType[*net.DNSError](err)
		return ok && !dns.IsTimeout
	}, handoff.ReasonNameUnknown},
	{is(exec.ErrNotFound), handoff.ReasonProgramMissing},
	{typed[*exec.Error], handoff.ReasonProgramMissing},
	{is(syscall.ECONNREFUSED), handoff.ReasonNotRunning},
	{func(err error) bool { // no socket of that name
		return typed[*net.OpError](err) && errors.Is(err, fs.ErrNotExist)
	}, handoff.ReasonNotRunning},
	{func(err error) bool {
		return typed[*net.OpError](err) && errors.Is(err, fs.ErrPermission)
	}, handoff.ReasonNotAllowed},
	{is(syscall.EHOSTUNREACH), handoff.ReasonNoRoute},
	{is(syscall.ENETUNREACH), handoff.ReasonNoRoute},
	{is(syscall.EHOSTDOWN), handoff.ReasonNoRoute},
	{func(err error) bool {
		op, ok := errors.AsType[*net.OpError](err)
		return ok && op.Op == "dial" && op.Timeout()
	}, handoff.ReasonAsleep},
	{isTimeout, handoff.ReasonSilent},
	{is(io.EOF), handoff.ReasonCut},
	{is(io.ErrUnexpectedEOF), handoff.ReasonCut},
	{is(syscall.ECONNRESET), handoff.ReasonCut},
	{is(syscall.EPIPE), handoff.ReasonCut},
	{is(net.ErrClosed), handoff.ReasonCut},
}

func typed[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func isTimeout(err error) bool {
	timed, ok := errors.AsType[net.Error](err)
	return ok && timed.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// ReasonOf returns the reason of a dial's error.
func ReasonOf(err error) handoff.Reason {
	for _, row := range dialReasons {
		if row.fits(err) {
			return row.reason
		}
	}
	return handoff.ReasonUnknown
}

// RefusalOf returns the error for a server's unexpected answer to an HTTP request.
func RefusalOf(server string, status int, body string) *handoff.Error {
	detail := strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, body))
	fault := func(code handoff.Code, why handoff.Reason) *handoff.Error {
		return &handoff.Error{Code: code, Subject: server, Detail: detail, Reason: why}
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fault(handoff.CodeTokenRefused, handoff.ReasonTokenRefused)
	case strings.Contains(body, "HTTP request to an HTTPS server"),
		strings.Contains(body, "plain HTTP request was sent to HTTPS port"),
		status == http.StatusUpgradeRequired:
		return fault(handoff.CodeUnreachable, handoff.ReasonPlaintextRefused)
	}
	return fault(handoff.CodeUnreachable, handoff.ReasonStranger)
}

// HandshakeFault adds the reason to the error of a failed handshake. died says how the server's program ended; nil: it
// has not ended, or it does not run here.
func HandshakeFault(fault *handoff.Error, err error, died *string) *handoff.Error {
	if fault.Reason != "" || fault.Code != handoff.CodeUnreachable {
		return fault
	}
	completed := *fault
	completed.Reason = ReasonOf(err)
	if completed.Reason == handoff.ReasonCut && died != nil {
		completed.Reason, completed.Detail = handoff.ReasonProgramEnded, *died
	}
	return &completed
}

// codeReasons are the reasons of errors that have only a code. Set once.
var codeReasons = map[handoff.Code]handoff.Reason{
	handoff.CodeTokenRefused: handoff.ReasonTokenRefused,
	handoff.CodeUnauthorized: handoff.ReasonTokenRefused,
	handoff.CodeOutdated:     handoff.ReasonOutdated,
	handoff.CodeShutdown:     handoff.ReasonStopping,
	handoff.CodeUnreachable:  handoff.ReasonUnknown,
}

// Explain returns an error of a server with the words of its reason. since is when the server was up last; zero: not
// known. An error without a reason, which is not about the connection, gets the words of its code.
func (s Spec) Explain(fault *handoff.Error, since time.Time) *handoff.Error {
	explained := *fault
	if explained.Reason == "" {
		explained.Reason = codeReasons[explained.Code]
	}
	explained.Reason = s.atLoopback(explained.Reason)
	if explained.Reason == handoff.ReasonOutdated {
		explained.Detail = cmp.Or(explained.Detail, explained.Subject) // the subject is the whole sentence
	}
	switch {
	case explained.Reason != "":
	case explained.Code == handoff.CodeRefused && explained.Detail != "":
		explained.Why = cmp.Or(explained.Why, explained.Detail)
		explained.Next = cmp.Or(explained.Next, "Correct that there, or in the settings of "+s.Name+".")
		return &explained
	default:
		explained.Why, explained.Next = explained.Spoken(), explained.Meaning().Next
		return &explained
	}
	explained.Why, explained.Next = explain(explained.Reason, reasonFacts{
		Name: s.Name, Detail: explained.Detail, Credential: s.Credential.Name,
		Address: strings.TrimPrefix(s.About.Address, "ssh:"), Start: s.About.Start, Ours: s.EndsWithUs,
		Since: since,
	}, time.Now())
	return &explained
}

// atLoopback returns the reason for a server whose address is on this computer: a tunnel may be in between.
func (s Spec) atLoopback(reason handoff.Reason) handoff.Reason {
	u, err := url.Parse(s.About.Address)
	if err != nil || u.Scheme != "ws" || !Loopback(u.Hostname()) {
		return reason
	}
	switch reason {
	case handoff.ReasonNotRunning:
		return handoff.ReasonTunnelDown
	case handoff.ReasonCut:
		return handoff.ReasonTunnelEmpty
	}
	return reason
}
