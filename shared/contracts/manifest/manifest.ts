import { z } from 'zod';
import { documentId } from '../documents/document.ts';
import { refuseRepeats } from '../documents/refuse-repeats.ts';
import { webhookSignature } from '../documents/webhook-signature.ts';
import { context } from './context.ts';
import { bareHost, httpUrl, port, schemeHost, urlPath } from './hosts.ts';
import { search, sslMode } from './search.ts';
import { secretRef } from './secret-ref.ts';

/**
 * The manifest: the document that describes one agent (schema version 6.1.5). Unknown fields are refused, credentials are only ever
 * named as `${VAR_NAME}`. Parsed, every field is there: what was not given has its default, and null means that it is not used.
 */
const modelId = z.string().regex(/^[^\s/]+\/\S+$/, 'must be a model id like provider/model');

const runtime = z.strictObject({
  /** The one token that opens the agent's API, and that callbacks carry. */
  api_key: secretRef,
  log_level: z.enum(['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL']).default('INFO'),
  /** Rounds of tools and thinking in one turn. */
  max_engine_iterations: z.number().int().min(1).default(5),
  /** Policies that one call of the matcher judges. */
  policy_batch_size: z.number().int().min(1).default(5),
});

const platform = z.strictObject({
  /** The router's and the traces' addresses derive from it; null: this deployment. */
  base_url: httpUrl.nullable().default(null),
  public_key: secretRef,
  secret_key: secretRef,
});

const llms = z.strictObject({
  default: modelId,
  /** The key that the agent's model calls are made with. */
  api_key: secretRef,
  /** Tried in this order after `default`. */
  fallback: z.array(modelId).default([]),
  /** Judges policies and steps; null: `default` does. */
  evaluation: modelId.nullable().default(null),
  evaluation_fallback: modelId.nullable().default(null),
});

const toolServer = z.strictObject({
  /** Comes before the names of its tools: `id:tool`. */
  id: documentId,
  hostname: schemeHost,
  port,
  transport: z.literal('streamable-http').default('streamable-http'),
  path: urlPath.default('/mcp'),
  api_key: secretRef.nullable().default(null),
});

const database = z.strictObject({
  hostname: bareHost,
  port: port.default(5432),
  user: z.string().min(1).default('postgres'),
  password: secretRef,
  dbname: z.string().min(1).default('postgres'),
  sslmode: sslMode.default('require'),
});

const traces = z.strictObject({
  deployment_environment: z.string().min(1).default('production'),
  /** The input field of autonomous runs whose value names their traces; null: none does. */
  trace_id_field: z.string().min(1).nullable().default(null),
  /** null: the platform's own. */
  backend: z
    .strictObject({
      url: httpUrl.nullable().default(null),
      api_key: secretRef.nullable().default(null),
      api_key_scheme: z.enum(['bearer', 'basic']).default('bearer'),
    })
    .refine(({ url, api_key: apiKey }) => url !== null || apiKey === null, { path: ['url'], message: 'must be given when api_key is' })
    .nullable()
    .default(null),
});

const webhook = z.strictObject({
  /** The segment after `/webhooks/`. */
  name: documentId,
  ...webhookSignature,
  /** The autonomous routines that a delivery may start. */
  routines: z
    .array(documentId)
    .min(1)
    .superRefine(refuseRepeats((id) => id)),
});

const agentConfig = z.strictObject({
  runtime,
  platform,
  llms,
  context,
  mcps: z
    .array(toolServer)
    .superRefine(refuseRepeats(({ id }) => id, ['id']))
    .default([]),
  search: search.nullable().default(null),
  database: database.nullable().default(null),
  traces: traces.nullable().default(null),
  webhooks: z
    .array(webhook)
    .superRefine(refuseRepeats(({ name }) => name, ['name']))
    .default([]),
});

export const manifest = z.strictObject({
  /** The manifest's shape differs between versions of its schema; null: the one read here. */
  schema_version: z
    .string()
    .regex(/^6\.\d+\.\d+$/, 'must be 6.x.y, the version of the schema that is read here')
    .nullable()
    .default(null),
  id: z.string().regex(/^[A-Za-z0-9_-]+$/, 'must be letters, digits, hyphens or underscores'),
  name: z.string().min(1),
  /** A label of the revision. */
  version: z.string().min(1),
  /** Whether the platform gives the agent a public address. */
  endpoint: z.boolean().default(false),
  /** Bundles of secrets that the platform puts into the environment before the agent starts. */
  secrets: z.array(z.strictObject({ secret_name: z.string().min(1) })).default([]),
  agent_config: agentConfig,
});
export type Manifest = z.infer<typeof manifest>;
