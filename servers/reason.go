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

// DialFault says why a server was not reached, as far as the error of whatever dialled it tells.
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

// dialReasons are the reasons of errors that the system and its network libraries give, the first that fits first. Set
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

// ReasonOf finds the reason of an error that dialling gave.
func ReasonOf(err error) handoff.Reason {
	for _, row := range dialReasons {
		if row.fits(err) {
			return row.reason
		}
	}
	return handoff.ReasonUnknown
}

// RefusalOf says what it means that a server answers an HTTP request otherwise than it should.
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

// HandshakeFault completes the fault of a handshake that failed over a connection that was made. died is how the
// program ended that is the server, if it is one that runs here; nil: it is none, or did not tell.
func HandshakeFault(fault *handoff.Error, err error, died *string) *handoff.Error {
	if fault.Reason != "" || fault.Code != handoff.CodeUnreachable {
		return fault
	}
	told := *fault
	told.Reason = ReasonOf(err)
	if told.Reason == handoff.ReasonCut && died != nil {
		told.Reason, told.Detail = handoff.ReasonProgramEnded, *died
	}
	return &told
}

// codeReasons are the reasons of faults that only have a code. Set once.
var codeReasons = map[handoff.Code]handoff.Reason{
	handoff.CodeTokenRefused: handoff.ReasonTokenRefused,
	handoff.CodeUnauthorized: handoff.ReasonTokenRefused,
	handoff.CodeOutdated:     handoff.ReasonOutdated,
	handoff.CodeShutdown:     handoff.ReasonStopping,
	handoff.CodeUnreachable:  handoff.ReasonUnknown,
}

// Explain gives a fault of a server the words of its reason. since is when the server was there last; zero: nobody
// knows. A fault that has no reason, since it is about something else, stays as it is.
func (s Spec) Explain(fault *handoff.Error, since time.Time) *handoff.Error {
	told := *fault
	if told.Reason == "" {
		told.Reason = codeReasons[told.Code]
	}
	told.Reason = s.atLoopback(told.Reason)
	if told.Reason == handoff.ReasonOutdated {
		told.Detail = cmp.Or(told.Detail, told.Subject) // which is the sentence
	}
	if told.Reason == "" {
		told.Why, told.Next = told.Spoken(), told.Meaning().Next
		return &told
	}
	told.Why, told.Next = explain(told.Reason, reasonFacts{
		Name: s.Name, Detail: told.Detail, Credential: s.Credential.Name,
		Address: strings.TrimPrefix(s.About.Address, "ssh:"), Start: s.About.Start, Since: since,
	}, time.Now())
	return &told
}

// atLoopback tells a tunnel from a machine: where the address is one of this computer, a tunnel may stand between.
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
