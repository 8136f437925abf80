import { type Kysely, type Migration, Migrator } from "kysely";

/**
 * The migrations, in order. Append only: a migration that has been released is never edited. They use
 * nothing that only one SQL dialect has.
 */
const migrations: Record<string, Migration> = {
  "0001-authority": { up: createAuthority },
  "0002-sessions": { up: createSessions },
  "0003-resources": { up: createResources },
  "0004-authorization-age": { up: (database) => index(database, "authorizations", ["expiresAt"]) },
  "0006-jobs": { up: createJobs },
  "0007-state": { up: createState },
};

/** Brings a database to the newest schema; throws what went wrong, with the name of the migration. */
export async function migrate<T>(database: Kysely<T>): Promise<void> {
  const migrator = new Migrator({
    db: database,
    provider: { getMigrations: () => Promise.resolve(migrations) },
  });
  const { error, results } = await migrator.migrateToLatest();
  if (error === undefined) return;
  const failed = results?.find((result) => result.status === "Error");
  throw new Error(`The database could not be migrated${failed ? ` (${failed.migrationName})` : ""}.`, {
    cause: error,
  });
}

async function createAuthority(database: Kysely<unknown>): Promise<void> {
  const { schema } = database;
  await schema
    .createTable("meta")
    .addColumn("key", "text", (column) => column.primaryKey())
    .addColumn("value", "text", (column) => column.notNull())
    .execute();
  await schema
    .createTable("participants")
    .addColumn("id", "text", (column) => column.notNull())
    .addColumn("revision", "integer", (column) => column.notNull())
    .addColumn("digest", "text", (column) => column.notNull())
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("artifact", "text", (column) => column.notNull())
    .addColumn("owner", "text")
    .addColumn("installedAt", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("participantsPrimary", ["id", "revision"])
    .execute();
  await schema
    .createTable("deployments")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("name", "text", (column) => column.notNull().unique())
    .addColumn("participantId", "text", (column) => column.notNull())
    .addColumn("participantDigest", "text", (column) => column.notNull())
    .addColumn("disabled", "integer", (column) => column.notNull())
    .addColumn("epoch", "integer", (column) => column.notNull())
    .addColumn("previousEpoch", "integer")
    .addColumn("previousUntil", "bigint")
    .addColumn("secret", "text", (column) => column.notNull())
    .addColumn("createdAt", "bigint", (column) => column.notNull())
    .execute();
  await index(database, "deployments", ["participantId"]);
  await schema
    .createTable("bindings")
    .addColumn("deploymentId", "text", (column) => column.notNull())
    .addColumn("api", "text", (column) => column.notNull())
    .addColumn("providerId", "text", (column) => column.notNull())
    .addColumn("createdAt", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("bindingsPrimary", ["deploymentId", "api"])
    .execute();
  await schema
    .createTable("instances")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("deploymentId", "text", (column) => column.notNull())
    .addColumn("identityKey", "text", (column) => column.notNull().unique())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("disabled", "integer", (column) => column.notNull())
    .addColumn("ephemeral", "integer", (column) => column.notNull())
    .addColumn("createdAt", "bigint", (column) => column.notNull())
    .execute();
  await index(database, "instances", ["deploymentId"]);
  await schema
    .createTable("grants")
    .addColumn("principal", "text", (column) => column.notNull())
    .addColumn("participantId", "text", (column) => column.notNull())
    .addColumn("revision", "integer", (column) => column.notNull())
    .addColumn("grants", "text", (column) => column.notNull())
    .addColumn("updatedAt", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("grantsPrimary", ["principal", "participantId"])
    .execute();
  await schema
    .createTable("audit")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("at", "bigint", (column) => column.notNull())
    .addColumn("actor", "text", (column) => column.notNull())
    .addColumn("action", "text", (column) => column.notNull())
    .addColumn("subject", "text", (column) => column.notNull())
    .addColumn("detail", "text", (column) => column.notNull())
    .execute();
}

async function createSessions(database: Kysely<unknown>): Promise<void> {
  const { schema } = database;
  await schema
    .createTable("connections")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("instanceId", "text", (column) => column.notNull())
    .addColumn("deploymentId", "text", (column) => column.notNull())
    .addColumn("participantId", "text", (column) => column.notNull())
    .addColumn("participantDigest", "text", (column) => column.notNull())
    .addColumn("identityKey", "text", (column) => column.notNull())
    .addColumn("sessionKey", "text", (column) => column.notNull())
    .addColumn("authorizationDigest", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("serverId", "text")
    .addColumn("cid", "bigint")
    .addColumn("createdAt", "bigint", (column) => column.notNull())
    .addColumn("updatedAt", "bigint", (column) => column.notNull())
    .execute();
  await index(database, "connections", ["instanceId"]);
  await index(database, "connections", ["deploymentId"]);
  await schema
    .createTable("authorizations")
    .addColumn("digest", "text", (column) => column.primaryKey())
    .addColumn("connectionId", "text", (column) => column.notNull())
    .addColumn("instanceId", "text", (column) => column.notNull())
    .addColumn("deploymentId", "text", (column) => column.notNull())
    .addColumn("sessionKey", "text", (column) => column.notNull())
    .addColumn("payload", "text", (column) => column.notNull())
    .addColumn("signature", "text", (column) => column.notNull())
    .addColumn("grantsDigest", "text", (column) => column.notNull())
    .addColumn("policyDigest", "text", (column) => column.notNull())
    .addColumn("issuedAt", "bigint", (column) => column.notNull())
    .addColumn("expiresAt", "bigint", (column) => column.notNull())
    .addColumn("revokedAt", "bigint")
    .execute();
  await index(database, "authorizations", ["connectionId"]);
  await index(database, "authorizations", ["instanceId"]);
  await index(database, "authorizations", ["deploymentId"]);
  await schema
    .createTable("contents")
    .addColumn("digest", "text", (column) => column.primaryKey())
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .execute();
  await schema
    .createTable("revocations")
    .addColumn("subjectKind", "text", (column) => column.notNull())
    .addColumn("subjectId", "text", (column) => column.notNull())
    .addColumn("at", "bigint", (column) => column.notNull())
    .addColumn("reason", "text", (column) => column.notNull())
    .addColumn("payload", "text", (column) => column.notNull())
    .addColumn("signature", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("revocationsPrimary", ["subjectKind", "subjectId"])
    .execute();
  await schema
    .createTable("pendingNotices")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("about", "text", (column) => column.notNull())
    .execute();
  await schema
    .createTable("issuers")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("publicKey", "text", (column) => column.notNull())
    .addColumn("notBefore", "bigint", (column) => column.notNull())
    .addColumn("expiresAt", "bigint", (column) => column.notNull())
    .addColumn("createdAt", "bigint", (column) => column.notNull())
    .execute();
}

async function createResources(database: Kysely<unknown>): Promise<void> {
  await database.schema
    .createTable("resources")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("deploymentId", "text", (column) => column.notNull())
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("alias", "text", (column) => column.notNull())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("spec", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("createdAt", "bigint", (column) => column.notNull())
    .addColumn("updatedAt", "bigint", (column) => column.notNull())
    .addUniqueConstraint("resourcesOwner", ["deploymentId", "kind", "alias"])
    .execute();
}

async function createJobs(database: Kysely<unknown>): Promise<void> {
  await database.schema
    .createTable("jobs")
    .addColumn("deploymentId", "text", (column) => column.notNull())
    .addColumn("queue", "text", (column) => column.notNull())
    .addColumn("id", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("createdAt", "bigint", (column) => column.notNull())
    .addColumn("updatedAt", "bigint", (column) => column.notNull())
    .addColumn("error", "text")
    .addColumn("snapshot", "text", (column) => column.notNull())
    .addColumn("sequence", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("jobsPrimary", ["deploymentId", "queue", "id"])
    .execute();
  await index(database, "jobs", ["createdAt", "id"]);
  await index(database, "jobs", ["deploymentId", "queue", "state", "createdAt"]);
  await index(database, "jobs", ["state", "updatedAt"]);
}

async function createState(database: Kysely<unknown>): Promise<void> {
  await database.schema
    .createTable("state")
    .addColumn("principal", "text", (column) => column.notNull())
    .addColumn("participantId", "text", (column) => column.notNull())
    .addColumn("alias", "text", (column) => column.notNull())
    .addColumn("value", "text")
    .addColumn("version", "integer", (column) => column.notNull())
    .addColumn("revision", "bigint", (column) => column.notNull())
    .addColumn("write", "text", (column) => column.notNull())
    .addColumn("updatedAt", "bigint", (column) => column.notNull())
    .addColumn("expiresAt", "bigint")
    .addPrimaryKeyConstraint("statePrimary", ["principal", "participantId", "alias"])
    .execute();
}

function index(database: Kysely<unknown>, table: string, columns: string[]): Promise<void> {
  return database.schema
    .createIndex([table, ...columns].join("_"))
    .on(table)
    .columns(columns)
    .execute();
}
