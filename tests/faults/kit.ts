import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { NatsConnection } from "@nats-io/nats-core";
import type { ConnectedClient, Logger } from "@trellis/runtime";
import { nodePlatform, type Platform } from "@trellis/runtime/node";
import type { ConnectedService } from "@trellis/runtime/service";
import {
  type StartTrellisOptions,
  startTrellis,
  type TestConnectOptions,
  type TestTrellis,
} from "@trellis/testing";
import { workApp, workService } from "./contract.ts";

export type WorkService = ConnectedService<typeof workService>;
export type WorkClient = ConnectedClient<typeof workApp>;

/** What a provider of `faults.work@v1` was made to do, for assertions. */
export interface Done {
  /** Numbers that a handler began with, in order. */
  readonly begun: number[];
  readonly finished: number[];
  /** Numbers whose signal aborted, with the reason's type. */
  readonly aborted: { readonly n: number; readonly reason: string }[];
}

export function nothingDone(): Done {
  return { begun: [], finished: [], aborted: [] };
}

/** Registers the plain handlers; `by` names the instance in their answers. */
export function plainHandlers(
  service: WorkService,
  done: Done = nothingDone(),
  by = service.auth.instance,
): Done {
  const { work } = service.handle.rpc;
  const slow = async (input: { n: number; ms: number }, signal: AbortSignal) => {
    done.begun.push(input.n);
    await pause(input.ms, signal).catch(() => {
      done.aborted.push({ n: input.n, reason: typeName(signal.reason) });
      throw signal.reason;
    });
    done.finished.push(input.n);
    return { n: input.n, by };
  };
  work.echo(({ input }) => ({ text: input.text }));
  work.count(({ input }) => {
    done.begun.push(input.n);
    done.finished.push(input.n);
    return { n: input.n, by };
  });
  work.slow(({ input, context }) => slow(input, context.signal));
  work.slowAgain(({ input, context }) => slow(input, context.signal));
  return done;
}

export interface StartWorkOptions {
  readonly trellis?: StartTrellisOptions;
  readonly service?: TestConnectOptions;
  readonly client?: TestConnectOptions;
  /** Default: the plain handlers. */
  setup?(service: WorkService): void;
}

export interface Working extends AsyncDisposable {
  readonly trellis: TestTrellis;
  readonly service: WorkService;
  readonly client: WorkClient;
  readonly done: Done;
}

/** A Trellis with one provider and one client. */
export async function startWork(options: StartWorkOptions = {}): Promise<Working> {
  const trellis = await startTrellis(options.trellis);
  try {
    const done = nothingDone();
    const setup = options.setup ?? ((service: WorkService) => void plainHandlers(service, done));
    const service = await trellis.service(workService, setup, options.service);
    const client = await trellis.client(workApp, options.client);
    return { trellis, service, client, done, [Symbol.asyncDispose]: () => trellis.stop() };
  } catch (error) {
    await trellis.stop();
    throw error;
  }
}

/** Waits, or rejects as soon as the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
  });
}

export function typeName(value: unknown): string {
  if (typeof value !== "object" || value === null) return typeof value;
  if ("type" in value && typeof value.type === "string") return value.type;
  return "name" in value && typeof value.name === "string" ? value.name : "object";
}

/** Milliseconds that `work` took, and what it gave. */
export async function timed<T>(work: () => PromiseLike<T>): Promise<{ ms: number; value: T }> {
  const started = performance.now();
  const value = await work();
  return { ms: performance.now() - started, value };
}

/** Collects unhandled rejections and uncaught exceptions until it is disposed. */
export function watchUnhandled(): Disposable & { readonly seen: unknown[] } {
  const seen: unknown[] = [];
  const note = (error: unknown) => void seen.push(error);
  process.on("unhandledRejection", note);
  process.on("uncaughtException", note);
  return {
    seen,
    [Symbol.dispose]() {
      process.off("unhandledRejection", note);
      process.off("uncaughtException", note);
    },
  };
}

export interface LogRecord {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A logger that keeps its records. */
export function recordingLog(): Logger & { readonly records: LogRecord[] } {
  const records: LogRecord[] = [];
  const record =
    (level: LogRecord["level"]) =>
    (fields: Readonly<Record<string, unknown>>, message = "") =>
      void records.push({ level, fields, message });
  return {
    records,
    debug: record("debug"),
    info: record("info"),
    warn: record("warn"),
    error: record("error"),
  };
}

/** True when the long form of the suite was asked for. */
export const soak = process.env["TRELLIS_SOAK"] === "1";

/** The full count in the long form, else the small one. */
export function count(full: number, small: number): number {
  return soak ? full : small;
}

/** A platform whose broker connections are kept, so that a test can misuse them with their rights. */
export function capturing(): {
  readonly platform: { dial: Platform["dial"] };
  readonly dialled: NatsConnection[];
} {
  const dialled: NatsConnection[] = [];
  const dial: Platform["dial"] = async (options) => {
    const nats = await nodePlatform.dial(options);
    dialled.push(nats);
    return nats;
  };
  return { platform: { dial }, dialled };
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes of heap in use, after everything that can go has gone. */
export async function heap(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    collect();
    await pause(5);
  }
  return process.memoryUsage().heapUsed;
}
