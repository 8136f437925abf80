import { type Attributes, type Meter, metrics } from "@opentelemetry/api";
import { defineApi, defineApp, defineService, job, rpc, use } from "@trellis/contract";
import { controlJobs, eventually, startTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { beforeAll, expect, it } from "vitest";

interface Measure {
  readonly name: string;
  readonly unit: string | undefined;
  readonly value: number;
  readonly labels: Attributes | undefined;
}

const measured: Measure[] = [];

/** As much of a meter as records what it is told. */
beforeAll(() => {
  const instrument = (name: string, { unit }: { unit?: string } = {}) => {
    const record = (value: number, labels?: Attributes) => void measured.push({ name, unit, value, labels });
    return { add: record, record };
  };
  const meter: Partial<Meter> = {
    createCounter: instrument,
    createHistogram: instrument,
    createUpDownCounter: instrument,
  };
  metrics.setGlobalMeterProvider({ getMeter: () => meter as Meter });
});

const of = (name: string) => measured.filter((each) => each.name === name);
const sum = (name: string) => of(name).reduce((total, { value }) => total + value, 0);

const Text = Type.Object({ text: Type.String() });
const api = defineApi("acme.metered@v1", { rpc: { "Text.Echo": rpc({ input: Text, output: Text }) } });
const service = defineService("acme.metered-service", {
  implements: [api],
  jobs: { print: job({ payload: Text, retry: { attempts: 2, backoff: ["10ms"] } }) },
});

it("requests and jobs are measured: how long, how many at a time, how they ended; labels are bounded", async () => {
  await using trellis = await startTrellis();
  let tries = 0;
  const running = await trellis.service(service, ({ handle, jobs }) => {
    handle.rpc.text.echo(({ input }) => {
      if (input.text === "bad") throw new Error("secret detail");
      return input;
    });
    jobs.print.handle(
      () => {
        tries += 1;
        if (tries === 1) throw new Error("secret detail");
      },
      { retryOn: () => true },
    );
  });
  const user = await trellis.client(defineApp("acme.metered-user", { uses: [use(api)] }));
  await user.rpc.text.echo({ text: "good" }).orThrow();
  expect((await user.rpc.text.echo({ text: "bad" })).isErr()).toBe(true);
  await eventually(() => expect(of("trellis.rpc.server.duration").length).toBeGreaterThanOrEqual(2));
  const served = of("trellis.rpc.server.duration").filter(({ labels }) => labels?.["action"] === "Text.Echo");
  expect(served.map(({ unit, labels }) => [unit, labels?.["outcome"]])).toEqual([
    ["s", "ok"],
    ["s", "error"],
  ]);
  await eventually(() => expect(sum("trellis.rpc.server.running")).toBe(0));
  await running.jobs.print.create({ text: "x" }).orThrow();
  await controlJobs(running.jobs).drain();
  await eventually(() => expect(of("trellis.job.duration")).toHaveLength(2));
  expect(of("trellis.job.duration").map(({ unit, labels }) => ({ unit, labels }))).toEqual([
    { unit: "s", labels: { queue: "print", outcome: "retry" } },
    { unit: "s", labels: { queue: "print", outcome: "completed" } },
  ]);
  for (const { value } of [...of("trellis.job.duration"), ...of("trellis.job.wait")]) {
    expect(value).toBeGreaterThanOrEqual(0);
    expect(value).toBeLessThan(10);
  }
  expect(of("trellis.job.wait")).toHaveLength(2);
  expect([of("trellis.job.running").length, sum("trellis.job.running")]).toEqual([4, 0]);
  expect(JSON.stringify(measured)).not.toContain("secret");
});
