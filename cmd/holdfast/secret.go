package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-pay/holdfast"
	"github.com/holdfast-pay/holdfast/cmd/holdfast/internal/seal"
)

const maxSecretFile = 16 << 10 // bytes

// masterKey names what opens sealed secrets, in the environment or in a file.
const masterKey = "HOLDFAST_MASTER_KEY"

// secret is the environment's value, or what is in the file that a flag or the
// environment names. Either may be sealed.
func (h *host) secret(name, file string) (string, error) {
	value, err := h.plain(name, file)
	if err != nil || !seal.Sealed(value) {
		return value, err
	}
	keys, err := h.masterKeys()
	if err != nil {
		return "", fmt.Errorf("open the secret of %s: %w", name, err)
	}
	if value, err = keys.Open(value); err != nil {
		return "", fmt.Errorf("open the secret of %s: %w", name, err)
	}
	return value, nil
}

func (h *host) masterKeys() (seal.Keys, error) {
	text, err := h.plain(masterKey, "")
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, fmt.Errorf("%s is not set, nor %s_FILE", masterKey, masterKey)
	}
	keys, err := seal.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", masterKey, err)
	}
	return keys, nil
}

// sealer is for what the store keeps sealed; nil = there is no master key.
func (h *host) sealer() (holdfast.Sealer, error) {
	if h.or(masterKey, "") == "" && h.or(masterKey+"_FILE", "") == "" {
		return nil, nil
	}
	keys, err := h.masterKeys()
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// plain is a value as it stands.
func (h *host) plain(name, file string) (string, error) {
	value := h.or(name, "")
	if file == "" {
		file = h.or(name+"_FILE", "")
	}
	if file == "" {
		return value, nil
	}
	if value != "" {
		return "", usagef("%s and a file for it are both set", name)
	}
	value, err := readSecret(file)
	if err != nil {
		return "", fmt.Errorf("read the file for %s: %w", name, err)
	}
	return value, nil
}

func readSecret(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	return readText(in)
}

func readText(in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxSecretFile {
		return "", fmt.Errorf("it has more than %d bytes", maxSecretFile)
	}
	value := strings.TrimSpace(string(b))
	if value == "" {
		return "", errors.New("it is empty")
	}
	return value, nil
}

func (h *host) secretCommand() *cobra.Command {
	return group("secret", "Keep the gateways' secrets encrypted", h.secretKey(), h.secretSeal(), h.secretRotate())
}

func (h *host) secretKey() *cobra.Command {
	return &cobra.Command{
		Use:   "key NAME",
		Short: "Make a master key for " + masterKey,
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			k, err := seal.New(args[0])
			if err != nil {
				return usagef("%v", err)
			}
			return h.show(map[string]string{"key": k}, func(w io.Writer) { fmt.Fprintln(w, k) })
		},
	}
}

func (h *host) secretSeal() *cobra.Command {
	return &cobra.Command{
		Use:   "seal",
		Short: "Read a secret from standard input and print it sealed",
		Long: "The secret comes from standard input: every user of a machine can read the command\n" +
			"lines of all its processes. What is printed may stand wherever the secret may, in a\n" +
			"file or in the environment, and is opened with " + masterKey + ".",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			keys, err := h.masterKeys()
			if err != nil {
				return err
			}
			plain, err := readText(c.InOrStdin())
			if err != nil {
				return fmt.Errorf("read the secret: %w", err)
			}
			if seal.Sealed(plain) {
				return usagef("it is sealed already")
			}
			sealed := keys.Seal(plain)
			return h.show(map[string]string{"sealed": sealed}, func(w io.Writer) { fmt.Fprintln(w, sealed) })
		},
	}
}

func (h *host) secretRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate FILE...",
		Short: "Seal what is in files anew, under the first of the master keys",
		Long: "Put the new key in front of the old one in " + masterKey + ", rotate, and take the old one\n" +
			"out. Plain files are sealed too. All files are opened before the first one is written.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			keys, err := h.masterKeys()
			if err != nil {
				return err
			}
			sealed := make([]string, len(files)) // "" = it is fresh
			for i, f := range files {
				if sealed[i], err = resealed(keys, f); err != nil {
					return fmt.Errorf("%s: %w", f, err)
				}
			}
			n := 0
			for i, f := range files {
				if sealed[i] == "" {
					continue
				}
				if err := replaceFile(f, sealed[i]+"\n"); err != nil {
					return fmt.Errorf("%s: %w", f, err)
				}
				n++
			}
			return h.show(map[string]int{"sealed": n, "fresh": len(files) - n}, func(w io.Writer) {
				fmt.Fprintf(w, "%d sealed anew, %d were fresh\n", n, len(files)-n)
			})
		},
	}
}

func resealed(keys seal.Keys, file string) (string, error) {
	text, err := readSecret(file)
	if err != nil || keys.Fresh(text) {
		return "", err
	}
	if seal.Sealed(text) {
		if text, err = keys.Open(text); err != nil {
			return "", err
		}
	}
	return keys.Seal(text), nil
}

// replaceFile writes a file anew, so that a crash leaves the old or the new one.
func replaceFile(file, text string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".holdfast-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is none
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
