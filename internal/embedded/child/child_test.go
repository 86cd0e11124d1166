//go:build unix

package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("CHILD_TEST_SCRATCH"); dir != "" {
		parent(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// parent starts a child, prints its process id, and waits to be killed.
func parent(dir string) {
	p, err := Start(exec.Command("sleep", "600"), dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.Pid())
	if os.Getenv("CHILD_TEST_END") == "panic" {
		panic("on purpose")
	}
	time.Sleep(time.Hour)
}

func TestAChildDiesWithAParentThatIsKilled(t *testing.T) {
	dir, pid := orphan(t, "kill")
	gone(t, pid)
	removed(t, dir)
}

func TestAChildDiesWithAParentThatPanics(t *testing.T) {
	dir, pid := orphan(t, "panic")
	gone(t, pid)
	removed(t, dir)
}

// orphan runs a parent with a child and ends the parent, so that the parent does not end the child.
func orphan(t *testing.T, end string) (dir string, pid int) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "scratch")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHILD_TEST_SCRATCH="+dir, "CHILD_TEST_END="+end)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("read the child's id: %v", err)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	if end == "kill" {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if cmd.Wait() == nil {
		t.Fatal("the parent ended well, which it was not to")
	}
	return dir, pid
}

func TestAChildSurvivesTheThreadOfWhoeverStartedIt(t *testing.T) {
	var p *Process
	ended := make(chan error, 1)
	go func() {
		// A goroutine that ends while it is locked to its thread ends the thread, and the kernel kills the
		// thread's children.
		runtime.LockOSThread()
		var err error
		p, err = Start(exec.Command("sleep", "600"), "")
		ended <- err
	}()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
		t.Fatalf("the child ended: %v", p.Err())
	case <-time.After(200 * time.Millisecond):
	}
	p.Kill()
	if p.Err() == nil {
		t.Fatal("a killed child reports a good end")
	}
}

func TestStopKillsAChildThatDoesNotListen(t *testing.T) {
	cmd := exec.Command("sh", "-c", `trap "" TERM; echo ready; while :; do sleep 1; done`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(cmd, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p.Stop(100 * time.Millisecond)
	if p.Err() == nil {
		t.Fatal("it was not killed")
	}
}

func TestStopEndsAChildThatListens(t *testing.T) {
	p, err := Start(exec.Command("sleep", "600"), "")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	p.Stop(time.Minute)
	if took := time.Since(begin); took > 30*time.Second {
		t.Fatalf("it took %v", took)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("a signal to a child that has ended: %v", err)
	}
}

func TestAProgramThatIsNotThereIsAnErrorThatNamesIt(t *testing.T) {
	_, err := Start(exec.Command("/nowhere/redis-server"), "")
	if err == nil || !strings.Contains(err.Error(), "/nowhere/redis-server") {
		t.Fatalf("got %v", err)
	}
}

func TestAFreePortCanBeListenedOn(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if port < lowestPort || port > highestPort {
		t.Fatalf("port %d", port)
	}
}

func TestAPortIsGivenOnceWhileNothingListensOnIt(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if reserve(port) == nil {
		t.Errorf("port %d may be given again, and its server be down just then", port)
	}
}

func gone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d still runs", pid), func() bool {
		// An orphan may stay a zombie if no process reaps it: that counts as gone.
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil {
			return strings.Contains(string(stat), ") Z ")
		}
		return syscall.Kill(pid, 0) != nil
	})
}

func removed(t *testing.T, dir string) {
	t.Helper()
	eventually(t, dir+" is still there", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
}

func eventually(t *testing.T, otherwise string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatal(otherwise)
}
