/** Writes a contract with many actions in the way in which people write one, and code that calls every one of them. */
export function stressSource(actions: number): string {
  const lines: string[] = [
    'import Type from "typebox";',
    'import { z } from "zod";',
    "import {",
    "  defineApi, defineApp, defineError, defineService, type Facade, type FacadeKind, type InputOf, type OutputOf,",
    "  type OwnedRpc, rpc, type RpcAction, type UsedRpc, use,",
    '} from "@trellis/contract";',
    'import type { AsyncResult } from "@trellis/result";',
    "",
    'const Missing = defineError("Missing", { data: Type.Object({ id: Type.String() }) });',
    'const Full = defineError("Full");',
    "const Line = Type.Object({ sku: Type.String(), note: Type.Union([Type.String(), Type.Null()]) });",
    "const ZodLine = z.object({ sku: z.string(), note: z.string().nullable() });",
    "interface RpcCaller<Input, Output, Failure> { (input: Input): AsyncResult<Output, Failure> }",
    "interface Callers extends FacadeKind {",
    '  readonly entry: this["action"] extends RpcAction<infer I, infer O, infer E>',
    "    ? RpcCaller<InputOf<I>, OutputOf<O>, InstanceType<E>> : never;",
    "}",
    "",
    'const api = defineApi("acme.stress@v1", {',
    "  rpc: {",
  ];
  for (let n = 0; n < actions; n++)
    lines.push(`    "${nameOf(n)}": ${n % 2 === 0 ? typeBoxAction(n) : zodAction(n)},`);
  lines.push(
    "  },",
    "});",
    'const service = defineService("acme.stress-service", { implements: [api] });',
    'const app = defineApp("acme.stress-app", { uses: [use(api)] });',
    "declare const owned: Facade<OwnedRpc<typeof service>, Callers>;",
    "declare const client: Facade<UsedRpc<typeof app>, Callers>;",
    "export async function all(): Promise<void> {",
  );
  for (let n = 0; n < actions; n++) {
    lines.push(
      `  const r${n} = await client.group${n % 50}.items${n}Do({ id: "x", qty: ${n}, lines: [{ sku: "s", note: null }] });`,
      `  if (r${n}.isOk()) r${n}.value.total.toFixed(); else if (r${n}.error.type === "Missing") r${n}.error.data.id.trim();`,
    );
  }
  lines.push("  void owned.group1.items1Do;", "}", "");
  return lines.join("\n");
}

/** `Group7.Items57.Do`, which is `group7.items57Do`. */
function nameOf(n: number): string {
  return `Group${n % 50}.Items${n}.Do`;
}

function typeBoxAction(n: number): string {
  return `rpc({
      input: Type.Object({ id: Type.String(), qty: Type.Integer(), mark${n}: Type.Optional(Type.String()), lines: Type.Array(Line) }),
      output: Type.Object({ total: Type.Number(), n${n}: Type.Boolean() }),
      errors: [Missing, Full],
    })`;
}

function zodAction(n: number): string {
  return `rpc({
      input: z.object({ id: z.string(), qty: z.number().int(), mark${n}: z.string().optional(), lines: z.array(ZodLine) }),
      output: z.object({ total: z.number(), n${n}: z.boolean() }),
      errors: [Missing],
    })`;
}
