import type { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import type { providerIdentity } from '#shared/config/router-config.ts';
import type { SearchLimit } from '#shared/contracts/router/search-limits.ts';
import type { Outbound } from '#shared/http/outbound.ts';
import type { OutboundRules } from '#shared/http/outbound-guard.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { OpenedAdapter } from './provider.ts';

/** What a provider does with requests and answers; not known counts as true. */
interface DataPolicy {
  trains: boolean;
  retains: boolean;
  /** True: its text may train other models, whatever the model's author permits. */
  isDistillable: boolean;
}

/** What requests for vectors may have. */
interface VectorTraits {
  /** Most inputs of one request, unless the endpoint states another number. */
  maxInputs: number;
  /** Whether inputs may be token ids. */
  takesTokens: boolean;
}

/** A provider of the configuration, as its dialect describes it. */
export interface ConfiguredProvider {
  slug: string;
  name: string;
  /** What its adapter sends of a request is known by this (`shared/config/kind-parameters.ts`). */
  kind: string;
  /** Where requests go, without path and query, which may hold secrets. Null: it answers in this process. */
  address: { address: string; port: number } | null;
  dataPolicy: DataPolicy;
  /** Of its reasoning details; null: it takes none back. */
  reasoningFormat: string | null;
  /** Null: it gives no vectors. */
  vectors: VectorTraits | null;
  /** Whether it searches the web by itself, also in requests with tools, and what limits its searches. Null: it does not. */
  webSearch: { besideTools: boolean; takes: readonly SearchLimit[] } | null;
  /** Whether its models read PDFs, where their endpoints do not say what they take. */
  readsPdf: boolean;
  open(settings: AdapterSettings): OpenedAdapter;
}

export interface AdapterSettings {
  /** The value of a `${VARIABLE}` of the block, without surrounding white space. */
  secret(reference: string): string;
  connectTimeoutMs: number;
  outbound: Outbound;
  /** For files at URLs of callers. */
  outboundRules: OutboundRules;
  /** Null: none. */
  cache: Cache | null;
  clock: Clock;
  log: Log;
  /** Of the scripted model's streams; 0 is unpaced. */
  scriptedWordsPerSecond: number;
}

type Identity = Pick<typeof providerIdentity, 'slug' | 'name'>;
/** Of a provider's whole block. It accepts its own output. */
type BlockSchema = z.ZodObject<Identity & { kind: z.ZodLiteral<string> }>;

/** A kind of provider: a folder with such a row. */
export interface Dialect {
  readonly config: BlockSchema;
  /** @throws ZodError for a block that `config` refuses */
  configure(block: unknown): ConfiguredProvider;
}

export function dialect<Schema extends BlockSchema>(config: Schema, describe: (block: z.output<Schema>) => Omit<ConfiguredProvider, 'kind'>): Dialect {
  const kind = config.shape.kind.value;
  return { config, configure: (block) => ({ ...describe(config.parse(block)), kind }) };
}
