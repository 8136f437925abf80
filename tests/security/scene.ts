import { defineApi, defineApp, defineError, defineService, rpc, use } from "@trellis/contract";
import type { ConnectedService } from "@trellis/runtime/service";
import {
  type StartTrellisOptions,
  startTrellis,
  type TestConnectOptions,
  type TestTrellis,
} from "@trellis/testing";
import { Type } from "typebox";

// The cast of the security tests: a stock service and a vault; a shop that may use some of the stock; an intruder
// that is an application, and one that is a service, each with honest permissions of its own.

export const OutOfStock = defineError("OutOfStock", { data: Type.Object({ left: Type.Number() }) });

export const stock = defineApi("acme.stock@v1", {
  rpc: {
    "Stock.Count": rpc({ input: Type.String(), output: Type.Number(), errors: [OutOfStock] }),
    "Stock.Slow": rpc({ input: Type.String(), output: Type.String() }),
    /** The shop is not granted this one. */
    "Stock.Destroy": rpc({ input: Type.String() }),
  },
});
export const vault = defineApi("acme.vault@v1", {
  rpc: { "Vault.Open": rpc({ output: Type.String() }), "Vault.Peek": rpc({ output: Type.String() }) },
});

export const stockService = defineService("acme.stock", { implements: [stock] });
export const vaultService = defineService("acme.vault", { implements: [vault] });
export const shop = defineApp("acme.shop", {
  uses: [use(stock, { rpc: ["Stock.Count", "Stock.Slow"] }), use(vault, { rpc: ["Vault.Peek"] })],
});
export const warehouse = defineApp("acme.warehouse", {
  uses: [use(stock, { rpc: ["Stock.Count", "Stock.Slow", "Stock.Destroy"] })],
});
/** An intruder with nothing but the least that an application has. */
export const intruderApp = defineApp("evil.app", { uses: [use(vault, { rpc: ["Vault.Peek"] })] });
/** An intruder that provides an API and uses one. */
export const trap = defineApi("evil.trap@v1", { rpc: { "Trap.Enter": rpc({ output: Type.String() }) } });
export const intruderService = defineService("evil.service", {
  implements: [trap],
  uses: [use(vault, { rpc: ["Vault.Peek"] })],
});

/** A control plane that does not lose patience with a test. */
export function startScene(options: StartTrellisOptions = {}): Promise<TestTrellis> {
  return startTrellis({ controlPlane: { failuresPerMinute: 1_000_000, ...options.controlPlane } });
}

export interface Stock {
  readonly service: ConnectedService<typeof stockService>;
  /** Inputs that reached a handler, in order, by action. */
  readonly handled: string[];
  /** Slow calls that are open, by input; calling one answers it. */
  readonly slow: Map<string, () => void>;
  /** Inputs of slow calls whose signal was aborted, with the reason. */
  readonly aborted: Map<string, unknown>;
}

/** A replica of the stock service that keeps a record of everything that reached it. */
export async function startStock(trellis: TestTrellis, options: TestConnectOptions = {}): Promise<Stock> {
  const handled: string[] = [];
  const slow = new Map<string, () => void>();
  const aborted = new Map<string, unknown>();
  const service = await trellis.service(
    stockService,
    ({ handle }) => {
      handle.rpc.stock.count(({ input }) => {
        handled.push(`count ${input}`);
        return input === "none" ? new OutOfStock({ data: { left: 0 } }) : input.length;
      });
      handle.rpc.stock.destroy(({ input }) => {
        handled.push(`destroy ${input}`);
      });
      handle.rpc.stock.slow(({ input, context }) => {
        handled.push(`slow ${input}`);
        context.signal.addEventListener("abort", () => aborted.set(input, context.signal.reason));
        return new Promise<string>((resolve) => slow.set(input, () => resolve(input)));
      });
    },
    options,
  );
  return { service, handled, slow, aborted };
}

export async function startVault(trellis: TestTrellis, options: TestConnectOptions = {}) {
  return trellis.service(
    vaultService,
    ({ handle }) => {
      handle.rpc.vault.open(() => "gold");
      handle.rpc.vault.peek(() => "a door");
    },
    options,
  );
}
