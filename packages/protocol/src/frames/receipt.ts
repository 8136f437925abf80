import { isToken } from "../subjects/token.ts";

/** What a receipt's payload says: the provider's connection, where a cancel or ping for the call goes. */
export interface Receipt {
  readonly connection: string;
}

/** JSON text of a receipt's payload. */
export function encodeReceipt(receipt: Receipt): string {
  return JSON.stringify({ connection: receipt.connection });
}

/** The receipt of a decoded payload; `undefined` when it names no connection. */
export function readReceipt(payload: unknown): Receipt | undefined {
  if (typeof payload !== "object" || payload === null || !("connection" in payload)) return undefined;
  const { connection } = payload;
  return typeof connection === "string" && isToken(connection) ? { connection } : undefined;
}
