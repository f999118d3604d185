import { z } from 'zod';
import { documentId } from '../documents/document.ts';
import { refuseRepeats } from '../documents/refuse-repeats.ts';
import { webhookSignature } from '../documents/webhook-signature.ts';
import { agentId } from './agent-id.ts';
import { context } from './context.ts';
import { bareHost, httpUrl, port, schemeHost, urlPath } from './hosts.ts';
import { search, sslMode } from './search.ts';
import { secretRef } from './secret-ref.ts';

/**
 * The manifest, which describes one agent (schema version 6.1.5). Unknown fields are refused; credentials are `${VAR_NAME}` references.
 * Parsed, absent fields have their default; null means unused.
 */
const modelId = z.string().regex(/^[^\s/]+\/\S+$/, 'must be a model id like provider/model');

const runtime = z.strictObject({
  /** Bearer token of the agent's API, also sent with callbacks. */
  api_key: secretRef,
  log_level: z.enum(['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL']).default('INFO'),
  /** Per turn. */
  max_engine_iterations: z.number().int().min(1).default(5),
  /** Policies per call of the matcher. */
  policy_batch_size: z.number().int().min(1).default(5),
});

const platform = z.strictObject({
  /** The addresses of router and traces derive from it; null: this deployment. */
  base_url: httpUrl.nullable().default(null),
  public_key: secretRef,
  secret_key: secretRef,
});

const llms = z.strictObject({
  default: modelId,
  /** The key of the agent's model calls. */
  api_key: secretRef,
  /** In order of trying, after `default`. */
  fallback: z.array(modelId).default([]),
  /** Model that evaluates policies and steps; null: `default`. */
  evaluation: modelId.nullable().default(null),
  evaluation_fallback: modelId.nullable().default(null),
});

const toolServer = z.strictObject({
  /** Prefix of its tools' names: `id:tool`. */
  id: documentId,
  /** Scheme and host, as in `https://tools.example.com`; the port and the path are fields of their own. */
  hostname: schemeHost,
  /** Also where it is the scheme's own: 443 or 80. */
  port,
  transport: z.literal('streamable-http').default('streamable-http'),
  /** Of the server's MCP endpoint. */
  path: urlPath.default('/mcp'),
  api_key: secretRef.nullable().default(null),
  /** Whether policies that its results carry are followed. */
  trusted: z.boolean().default(false),
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
  /** Field of a run's input that names the run's trace (`switchyard.trace_name`); it never sets the trace's id. null: none. */
  trace_id_field: z.string().min(1).nullable().default(null),
  /** null: the platform's. */
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
  /** Path segment after `/webhooks/`. */
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
  /** Version of the manifest's schema; null: the one read here. */
  schema_version: z
    .string()
    .regex(/^6\.\d+\.\d+$/, 'must be 6.x.y, the version of the schema that is read here')
    .nullable()
    .default(null),
  id: agentId,
  name: z.string().min(1),
  /** A label of the revision. */
  version: z.string().min(1),
  /** true: the agent registers `AGENT_PUBLIC_URL`, which has to be set, with its platform each minute. */
  endpoint: z.boolean().default(false),
  /** Secret bundles that the platform puts into the environment before the agent starts. */
  secrets: z.array(z.strictObject({ secret_name: z.string().min(1) })).default([]),
  agent_config: agentConfig,
});
export type Manifest = z.infer<typeof manifest>;
