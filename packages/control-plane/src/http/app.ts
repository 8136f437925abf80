import {
  BOOTSTRAP_PATHS,
  type Denial,
  type ProofPurpose,
  type Signed,
  type Transports,
  type WellKnown,
} from "@trellis/protocol";
import type { Clock } from "@trellis/runtime/node";
import { type Context, Hono } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { BootstrapCall } from "../bootstrap/authenticate.ts";
import { type BootstrapDeps, bootstrap } from "../bootstrap/bootstrap.ts";
import { foreignSurroundings } from "../bootstrap/dev-gate.ts";
import { isCredentialFailure, refusal } from "../bootstrap/refusal.ts";
import { FailureLimit } from "./failure-limit.ts";
import { readBody } from "./read-body.ts";

export interface HttpAppDeps {
  clock: Clock;
  bootstrap: BootstrapDeps;
  dev: boolean;
  issuers(): Signed;
  transports(): Transports;
  /** What is not ready yet, or `undefined`. */
  notReady(): string | undefined;
  /** Failed credentials that one address may have in a minute. */
  failuresPerMinute: number;
  /** The peer's address; proxies are not believed. */
  addressOf(context: Context): string;
}

const routes: readonly { path: string; purpose: ProofPurpose }[] = [
  { path: BOOTSTRAP_PATHS.service, purpose: "bootstrap.service" },
  { path: BOOTSTRAP_PATHS.client, purpose: "bootstrap.client" },
  { path: BOOTSTRAP_PATHS.refresh, purpose: "context.refresh" },
];

/**
 * The control plane's HTTP surface: discovery, health, and the way in. Everything else is an API over NATS.
 * Refusals carry a code and nothing that the caller did not know.
 */
export function httpApp(deps: HttpAppDeps): Hono {
  const app = new Hono();
  const limit = new FailureLimit(deps.failuresPerMinute);
  app.use(async (context, next) => {
    const surroundings = {
      host: context.req.header("host"),
      origin: context.req.header("origin"),
      names: headerNames(context),
    };
    const foreign = deps.dev
      ? foreignSurroundings(surroundings, deps.bootstrap.authenticate.origins())
      : undefined;
    if (foreign === undefined) await next();
    else context.res = deny(deps, context, refusal("trellis.bootstrap.origin_refused", { hint: foreign }));
    secure(context);
  });
  app.get("/healthz", (context) => context.json({ status: "ok" }));
  app.get("/readyz", (context) => {
    const waiting = deps.notReady();
    return waiting === undefined
      ? context.json({ status: "ok" })
      : context.json({ status: "unavailable", waiting }, 503);
  });
  app.get(BOOTSTRAP_PATHS.wellKnown, (context) => context.json(wellKnown(deps)));
  for (const { path, purpose } of routes) {
    app.post(path, (context) => serveBootstrap(deps, { limit, context, path, purpose }));
  }
  app.notFound((context) =>
    deny(deps, context, {
      status: 404,
      denial: { code: "trellis.http.not_found", message: "There is nothing here." },
    }),
  );
  app.onError((error, context) => {
    deps.bootstrap.log.error({ code: "trellis.http.failed", error }, "A request failed.");
    return deny(deps, context, refusal("trellis.bootstrap.unavailable"));
  });
  return app;
}

async function serveBootstrap(
  deps: HttpAppDeps,
  route: { limit: FailureLimit; context: Context; path: string; purpose: ProofPurpose },
): Promise<Response> {
  const { limit, context, path, purpose } = route;
  const address = deps.addressOf(context);
  const retryAfterMs = limit.waitFor(address, deps.clock.now());
  if (retryAfterMs !== undefined)
    return deny(deps, context, refusal("trellis.bootstrap.rate_limited", { retryAfterMs }));
  if (!isJson(context.req.header("content-type"))) {
    return deny(deps, context, { ...refusal("trellis.bootstrap.invalid_request"), status: 415 });
  }
  const body = await readBody(context.req.raw);
  if (body === undefined) {
    return deny(deps, context, { ...refusal("trellis.bootstrap.invalid_request"), status: 413 });
  }
  const call: BootstrapCall = {
    path,
    purpose,
    body,
    header: (name) => context.req.header(name),
    headerNames: () => headerNames(context),
  };
  const answer = await bootstrap(deps.bootstrap, call);
  if (answer.isOk()) return context.json(answer.value);
  if (isCredentialFailure(answer.error.denial.code)) limit.failed(address, deps.clock.now());
  return deny(deps, context, answer.error);
}

function wellKnown(deps: HttpAppDeps): WellKnown {
  return {
    version: 1,
    serverTime: deps.clock.now(),
    issuers: deps.issuers(),
    transports: deps.transports(),
    dev: deps.dev,
  };
}

function deny(
  deps: HttpAppDeps,
  context: Context,
  refused: { status: ContentfulStatusCode; denial: Omit<Denial, "serverTime"> },
): Response {
  const body: Denial = { ...refused.denial, serverTime: deps.clock.now() };
  if (body.retryAfterMs !== undefined)
    context.header("retry-after", String(Math.ceil(body.retryAfterMs / 1000)));
  return context.json(body, refused.status);
}

/** Nothing else: other types are what a page of any origin may send without asking first. */
function isJson(contentType: string | undefined): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType ?? "");
}

function secure(context: Context): void {
  context.header("cache-control", "no-store");
  context.header("x-content-type-options", "nosniff");
  context.header("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
  context.header("referrer-policy", "no-referrer");
  context.header("cross-origin-resource-policy", "same-origin");
}

function headerNames(context: Context): readonly string[] {
  return [...context.req.raw.headers.keys()];
}
