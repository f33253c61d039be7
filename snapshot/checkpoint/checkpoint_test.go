package checkpoint

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The key pair of RFC 8410, section 10, and a pair of nobody.
const (
	rfcPrivate = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
	rfcPublic  = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
)

func keys(t testing.TB) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	private, err := ParsePrivateKey([]byte(rfcPrivate))
	if err != nil {
		t.Fatal(err)
	}
	public, err := ParsePublicKey([]byte(rfcPublic))
	if err != nil || !public.Equal(private.Public()) {
		t.Fatalf("%v: the pair of the RFC does not belong together", err)
	}
	return public, private
}

func digest(c string) string { return strings.Repeat(c, 64) }

func example() *Checkpoint {
	return &Checkpoint{Origin: "host-boot", Time: time.Date(2026, 5, 4, 3, 2, 1, 5_000_000, time.UTC), Heads: []Head{
		{"host-boot-00000007", digest("a"), 7}, {"other-boot-00000001", digest("0"), 1}}}
}

func TestSignAndOpen(t *testing.T) {
	public, private := keys(t)
	note, err := example().Sign(private)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Open(note, public)
	if err != nil || !reflect.DeepEqual(got, example()) {
		t.Errorf("%v: %+v", err, got)
	}
	want, err := os.ReadFile("testdata/example.checkpoint")
	if err != nil || !bytes.Equal(note, want) {
		t.Errorf("%v: the golden file differs:\n%s", err, note)
	}
}

// Every byte counts: with one of them changed nothing opens, whatever the byte.
func TestEveryByteIsSigned(t *testing.T) {
	public, private := keys(t)
	note, err := example().Sign(private)
	if err != nil {
		t.Fatal(err)
	}
	for i := range note {
		for _, change := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(note)
			bad[i] ^= change
			if c, err := Open(bad, public); err == nil || !errors.Is(err, ErrFormat) && !errors.Is(err, ErrSignature) {
				t.Fatalf("byte %d changed: %v %+v", i, err, c)
			}
		}
	}
	for n := range note {
		if _, err := Open(note[:n], public); err == nil {
			t.Fatalf("the first %d bytes open", n)
		}
	}
	other, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(note, other); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: %v", err)
	}
}

// The example of golang.org/x/mod/sumdb/note, which is of another implementation.
func TestNoteOfAnotherImplementation(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
	if err != nil {
		t.Fatal(err)
	}
	note := "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n" +
		"\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
	public := ed25519.PublicKey(key[1:])
	if id := keyID("PeterNeumann", public); fmt.Sprintf("%x", id) != "c74f20a3" {
		t.Errorf("key id %x", id)
	}
	if _, err := verify([]byte(note), "PeterNeumann", public); err != nil {
		t.Error(err)
	}
	if _, err := verify([]byte(strings.Replace(note, "your", "our", 1)), "PeterNeumann", public); !errors.Is(err, ErrSignature) {
		t.Errorf("changed: %v", err)
	}
	if _, err := verify([]byte(note), "Peter", public); !errors.Is(err, ErrSignature) {
		t.Errorf("another name: %v", err)
	}
}

// A checkpoint may be countersigned by keys that we do not know.
func TestForeignSignaturesAreSteppedOver(t *testing.T) {
	public, private := keys(t)
	note, err := example().Sign(private)
	if err != nil {
		t.Fatal(err)
	}
	lines := "\u2014 witness AAAAAAAAAAAA\n"
	if _, err := Open(append(bytes.Clone(note), lines...), public); err != nil {
		t.Errorf("with a witness: %v", err)
	}
	for _, bad := range []string{"\n", "\u2014 witness\n", "- witness AAAAAAAA\n", "\u2014 wit ness AAAAAAAA\n", "\u2014 w AAA\n", "\u2014 w AAAA\n",
		"\u2014 w !!!!!!!!\n", strings.Repeat(lines, maxSignatures)} {
		if _, err := Open(append(bytes.Clone(note), bad...), public); !errors.Is(err, ErrFormat) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	_, private := keys(t)
	for name, change := range map[string]func(*Checkpoint){
		"no head":         func(c *Checkpoint) { c.Heads = nil },
		"no origin":       func(c *Checkpoint) { c.Origin = "" },
		"a line too many": func(c *Checkpoint) { c.Origin = "a\nhead b" },
		"a name in two":   func(c *Checkpoint) { c.Heads[1].Segment = "a b" },
		"short digest":    func(c *Checkpoint) { c.Heads[0].Digest = "aa" },
		"upper case":      func(c *Checkpoint) { c.Heads[0].Digest = digest("A") },
		"length":          func(c *Checkpoint) { c.Heads[0].Length = 0 },
	} {
		c := example()
		change(c)
		if _, err := c.Sign(private); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := example().Sign(nil); !errors.Is(err, ErrKey) {
		t.Errorf("no key: %v", err)
	}
	if _, err := Open(nil, nil); !errors.Is(err, ErrKey) {
		t.Errorf("no key: %v", err)
	}
	if _, err := Open(make([]byte, MaxBytes+1), private.Public().(ed25519.PublicKey)); !errors.Is(err, ErrFormat) {
		t.Errorf("too large: %v", err)
	}
}

// What is signed may still be no checkpoint: the key may have signed other notes.
func TestSignedTextsThatAreNoCheckpoints(t *testing.T) {
	public, private := keys(t)
	good, err := example().Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"checkpoint 1", "checkpoint 2"}, {"origin host-boot\n", ""}, {"time 2026", "time yesterday 2026"}, {".005Z", ".0050Z"}, {" 7\n", " 07\n"},
		{" 7\n", " 7 8\n"}, {" 7\n", " x\n"}, {"head ", "tail "}, {" 1\n", " 1\nmore\n"}, {"head host", "head  host"}, {"host-boot\n", "\u00a0\n"},
	} {
		text := strings.Replace(good, c[0], c[1], 1)
		if text == good {
			t.Fatalf("%q is not there", c[0])
		}
		if got, err := Open(sign(text, keyName, private), public); !errors.Is(err, ErrFormat) {
			t.Errorf("%q for %q: %v %+v", c[1], c[0], err, got)
		}
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	rsa := "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAL6xEXb5pQ9fNYvJ1nW2VfsVBkV7Vn3r\n-----END PUBLIC KEY-----\n"
	for name, text := range map[string]string{"empty": "", "private": rfcPrivate, "two": rfcPublic + rfcPublic, "cut": rsa} {
		if _, err := ParsePublicKey([]byte(text)); !errors.Is(err, ErrKey) {
			t.Errorf("public, %s: %v", name, err)
		}
	}
	secret := "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp"
	for name, text := range map[string]string{"public": rfcPublic, "two": rfcPrivate + rfcPrivate,
		"cut": "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n"} {
		_, err := ParsePrivateKey([]byte(text))
		if !errors.Is(err, ErrKey) || strings.Contains(err.Error(), secret[:8]) {
			t.Errorf("private, %s: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, make([]byte, maxKey+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPrivateKey(path); !errors.Is(err, ErrKey) {
		t.Errorf("a large file: %v", err)
	}
	if _, err := ReadPublicKey(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// The commands of the documentation make keys that are read, and OpenSSL accepts our
// signature.
func TestKeysOfOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("no openssl here")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(openssl, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	run("genpkey", "-algorithm", "ed25519", "-out", "key.pem")
	run("pkey", "-in", "key.pem", "-pubout", "-out", "key.pub")
	private, err := ReadPrivateKey(filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := ReadPublicKey(filepath.Join(dir, "key.pub"))
	if err != nil || !public.Equal(private.Public()) {
		t.Fatalf("%v: the two keys do not belong together", err)
	}
	if err := example().Write(filepath.Join(dir, "x"+Ext), private); err != nil {
		t.Fatal(err)
	}
	note, err := os.ReadFile(filepath.Join(dir, "x"+Ext))
	if err != nil {
		t.Fatal(err)
	}
	text, last, _ := strings.Cut(string(note), "\n\n")
	sig, err := base64.StdEncoding.DecodeString(strings.TrimSpace(last[strings.LastIndex(last, " "):]))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"text": []byte(text + "\n"), "sig": sig[4:]} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("pkeyutl", "-verify", "-pubin", "-inkey", "key.pub", "-rawin", "-in", "text", "-sigfile", "sig")
}

func TestWriteReplacesWhole(t *testing.T) {
	public, private := keys(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "x"+Ext)
	c := example()
	for n := range 3 {
		c.Heads[0].Length = int64(n) + 1
		if err := c.Write(path, private); err != nil {
			t.Fatal(err)
		}
		note, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Open(note, public); err != nil || got.Heads[0].Length != int64(n)+1 {
			t.Errorf("%v: %+v", err, got)
		}
	}
	if err := c.Write(dir, private); err == nil {
		t.Error("a directory was replaced")
	}
	if err := c.Write(filepath.Join(dir, "none", "x"), private); err == nil {
		t.Error("written into a directory that is not there")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v: files are left behind: %v", err, entries)
	}
}

func FuzzOpen(f *testing.F) {
	public, private := keys(f)
	note, err := example().Sign(private)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(note)
	f.Add([]byte("a\n\n\u2014 clefbench AAAAAAAA\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Open(data, public); err == nil && !bytes.HasPrefix(data, note[:bytes.Index(note, []byte("\n\n"))]) {
			t.Fatalf("a forged note opens: %q", data)
		}
		// The text behind the signature is parsed as if the key had signed it.
		if c, err := parse(data); err == nil {
			if text, err := c.Text(); err != nil || text != string(data) {
				t.Fatalf("%q is read, and written as %q, %v", data, text, err)
			}
		}
	})
}
