package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	webpush "github.com/SherClockHolmes/webpush-go"

	"switchboard/handoff"
)

const (
	fileName = "push.json"
	fileTemp = "push.json.new"
	fileMode = 0o600
)

// A kept is a subscription as it is kept.
type kept struct {
	Caller handoff.Caller       `json:"caller"`
	Login  string               `json:"login"` // that made it; it ends with that
	To     webpush.Subscription `json:"to"`
}

// contents is what the file has.
type contents struct {
	Private       string `json:"private"` // the keys that sign, made at the first start
	Public        string `json:"public"`
	Subscriptions []kept `json:"subscriptions"`
}

// load reads the file, and makes it with keys when it is not there.
func (s *Sender) load() error {
	text, err := s.root.ReadFile(fileName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if s.file.Private, s.file.Public, err = webpush.GenerateVAPIDKeys(); err != nil {
			return fmt.Errorf("make the keys of notifications: %w", err)
		}
		return s.save(s.file)
	case err != nil:
		return fmt.Errorf("read the keys of notifications: %w", err)
	}
	if err := json.Unmarshal(text, &s.file); err != nil || s.file.Private == "" || s.file.Public == "" {
		return fmt.Errorf("%s in the state directory cannot be read: move it away to begin with nobody subscribed", fileName)
	}
	return nil
}

// save puts the file into its place, whole or not at all.
func (s *Sender) save(c contents) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file, err := s.root.OpenFile(fileTemp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return s.root.Rename(fileTemp, fileName)
}
