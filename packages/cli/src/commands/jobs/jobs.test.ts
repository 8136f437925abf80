import { defineService, job } from "@trellis/contract";
import { eventually, startTrellis, type TestTrellis } from "@trellis/testing";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCli } from "../../cli.test-kit.ts";

const slow = 240_000;
const press = defineService("acme.press", {
  jobs: {
    print: job({ payload: Type.Object({ page: Type.Integer() }), retry: { attempts: 1, backoff: [] } }),
  },
});

let trellis: TestTrellis;
let broken = true;
let ids: string[];

beforeAll(async () => {
  trellis = await startTrellis();
  const { jobs } = await trellis.service(press, (service) =>
    service.jobs.print.handle(({ job }) => {
      if (broken && job.payload.page > 0) throw new Error("paper jam");
    }),
  );
  const pages = Array.from({ length: 12 }, (_, page) => ({ page }));
  ids = (await jobs.print.createMany(pages).orThrow()).map((ref) => ref.orThrow().id);
  await eventually(
    async () => {
      const { stdout } = await run(["jobs", "list", "--state", "failed", "--json"]);
      expect(JSON.parse(stdout)).toHaveLength(11);
    },
    { timeout: 60_000, interval: 500 },
  );
}, slow);
afterAll(() => trellis.stop());

const run = (args: readonly string[]) => runCli(args, { env: trellis.env() });

it(
  "shows jobs, their history and queues, and brings failed ones back",
  async () => {
    const id = ids[3] ?? "";
    const listed = await run(["jobs", "list", "--state", "failed", "--error", "jam", "--limit", "2"]);
    expect(listed.stdout.split("\n")[0]).toMatch(/^QUEUE +ID +STATE +TRIES +MADE +ERROR$/);
    expect(listed.stdout).toContain("acme.press/print");
    const got = JSON.parse((await run(["jobs", "get", "acme.press/print", id, "--json"])).stdout);
    expect(got).toMatchObject({
      job: { id, state: "failed" },
      events: [{ type: "created" }, { type: "failed" }],
    });
    expect((await run(["jobs", "pause", "acme.press/print"])).stdout).toBe("acme.press/print is paused\n");
    expect((await run(["jobs", "queues"])).stdout).toMatch(/acme\.press\/print +paused/);
    broken = false;
    expect((await run(["jobs", "retry", "acme.press/print", id])).stdout).toBe(`${id} is retried\n`);
    expect((await run(["jobs", "retry", "acme.press/print", id])).code).toBe(1);
    expect((await run(["jobs", "retry", "--all", "--queue", "print"])).stdout).toBe("10 retried\n");
    expect((await run(["jobs", "resume", "acme.press/print"])).code).toBe(0);
    const watched = await run(["jobs", "watch", "acme.press/print", id]);
    expect(watched.stdout).toMatch(/created[\s\S]*failed[\s\S]*retried[\s\S]*completed/);
  },
  slow,
);

it(
  "shows who does the jobs, and how they came and went",
  async () => {
    // The worker tells of itself as soon as it has begun, not at the next interval.
    await expect
      .poll(async () => (await run(["jobs", "workers", "acme.press"])).stdout, { timeout: 10_000 })
      .toMatch(/^QUEUE .*\nacme\.press\/print .* ok +\d+\/\d+ /);
    const workers = JSON.parse((await run(["jobs", "workers", "--json", "--queue", "print"])).stdout);
    expect(workers).toMatchObject([{ service: "acme.press", queue: "print", status: "ok" }]);
    expect((await run(["jobs", "workers", "--queue", "other"])).stderr).toContain("No worker");
    const [row] = JSON.parse((await run(["jobs", "queues", "--json"])).stdout);
    expect(row).toMatchObject({ queue: "print", workers: 1 });
    const asked = ["jobs", "metrics", "--queue", "print"];
    const metrics = JSON.parse((await run([...asked, "--json"])).stdout);
    const made = metrics.buckets.reduce((sum: number, part: { created: number }) => sum + part.created, 0);
    expect(made).toBe(ids.length);
    expect(metrics.runMs.count).toBeGreaterThan(0);
    expect((await run(asked)).stdout).toMatch(
      /created +[▁-█].*\n[\s\S]*completed +[▁-█].*\n[\s\S]*ran +p50 /,
    );
  },
  slow,
);

it(
  "says what is wrong with what it is asked",
  async () => {
    for (const [args, code, words] of [
      [["jobs", "get", "press", "x"], 2, "trellis jobs queues"],
      [["jobs", "get", "acme.press/print", "nobody"], 5, "nobody"],
      [["jobs", "list", "--state", "ded"], 2, "States are"],
      [["jobs", "list", "--since", "yesterday"], 2, "--since 2h"],
      [["jobs", "cancel"], 2, "--all"],
    ] as const) {
      const ran = await run(args);
      expect(ran.code).toBe(code);
      expect(ran.stderr).toContain(words);
    }
  },
  slow,
);
