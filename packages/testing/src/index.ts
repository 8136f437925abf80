export { controlJobs, type JobsControl, type JobWait, type SeenJob } from "./control-jobs.ts";
export { type EventuallyOptions, eventually } from "./eventually.ts";
export { FakeClock } from "./fake-clock.ts";
export { type FaultProxy, type FaultProxyOptions, startFaultProxy } from "./fault-proxy.ts";
export { type LeakOptions, type LeakWatch, watchLeaks } from "./leaks.ts";
export { type StartNatsOptions, startNats, type TestNats } from "./start-nats.ts";
export {
  type StartTrellisOptions,
  startTrellis,
  type TestConnectOptions,
  type TestTrellis,
} from "./start-trellis.ts";
export { type Startable, type StressOptions, stressStartStop } from "./stress-start-stop.ts";
