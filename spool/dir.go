package spool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// tempDir holds objects of a directory store while they are written.
const tempDir = ".spool-tmp"

// dirStore is a directory as a bucket. An object is written beside, synced, and gets its
// name by link(2), which fails when the name is taken: one winner among any number of
// processes, and never a part of an object. gocloud.dev's fileblob was seen to let two
// processes win, as it looks before it renames.
type dirStore struct {
	// root keeps to the directory that was opened: if its file system is unmounted while
	// we run, nothing is written to the empty mount point.
	root *os.Root
}

func openDir(dir string) (*dirStore, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &dirStore{root}
	if err := d.root.MkdirAll(tempDir, 0o755); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	d.sweep()
	return d, nil
}

// Close implements io.Closer.
func (d *dirStore) Close() error { return d.root.Close() }

// sweep removes what killed processes left behind. What cannot be removed stays: it is in
// nobody's way.
func (d *dirStore) sweep() {
	entries, err := fs.ReadDir(d.root.FS(), tempDir)
	if err != nil || !locks {
		return
	}
	for _, e := range entries {
		name := path.Join(tempDir, e.Name())
		f, err := d.root.Open(name)
		if err != nil {
			continue
		}
		if dead, err := tryLock(f); dead && err == nil {
			_ = d.root.Remove(name)
		}
		_ = f.Close()
	}
}

func (d *dirStore) create(ctx context.Context, o *object, body *os.File) error {
	if _, err := d.root.Stat(o.key); err == nil {
		return fmt.Errorf("%s: %w", o.key, fs.ErrExist)
	}
	temp := path.Join(tempDir, rand.Text())
	f, err := d.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	// The lock tells another process's sweep that this one lives.
	_, err = tryLock(f)
	if err == nil {
		_, err = io.Copy(f, &contextReader{ctx, body})
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = d.link(temp, o.key)
	}
	return errors.Join(err, d.root.Remove(temp), f.Close())
}

// link gives the object its name, and makes the name durable.
func (d *dirStore) link(temp, key string) error {
	dir := path.Dir(key)
	if err := d.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := d.root.Link(temp, key); err != nil {
		return err
	}
	for ; ; dir = path.Dir(dir) {
		if err := d.syncDir(dir); err != nil || dir == "." {
			return err
		}
	}
}

func (d *dirStore) syncDir(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// stat states no digest: a directory keeps no metadata, so the content is read.
func (d *dirStore) stat(_ context.Context, key string) (int64, string, error) {
	info, err := d.root.Stat(key)
	if err != nil {
		return 0, "", absent(err)
	}
	return info.Size(), "", nil
}

func (d *dirStore) open(ctx context.Context, key string) (io.ReadCloser, error) {
	f, err := d.root.Open(key)
	if err != nil {
		return nil, absent(err)
	}
	return struct {
		io.Reader
		io.Closer
	}{&contextReader{ctx, f}, f}, nil
}

func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errAbsent, err)
	}
	return err
}

// contextReader ends a copy when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
