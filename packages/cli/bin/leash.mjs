// Preloaded into processes that a parent started: file descriptor 3 is a pipe that only the parent holds open.
// It closes when the parent is gone, whatever killed it; then this process ends too, politely, then by force.
import { Socket } from "node:net";
import process from "node:process";

const graceMs = 10_000;

const leash = new Socket({ fd: 3, readable: true, writable: false });
leash.on("error", () => undefined);
leash.on("close", () => {
  process.kill(process.pid, "SIGTERM");
  setTimeout(() => process.exit(1), graceMs).unref();
});
leash.resume();
leash.unref();
