/** What became of a plugin that applied to a call. */
export interface PipelineEntry {
  type: 'guardrail' | 'plugin' | 'response_healing';
  /** Id of the plugin. */
  name: string;
  /** For people. */
  summary: string;
  /** Absent: there is nothing to count. */
  data?: Readonly<Record<string, string | number>>;
  /** What the caller pays for it; absent: nothing, or it is in the provider's part of the cost. */
  cost_usd?: number;
}

/** Where a call went, and why: `openrouter_metadata` of answers and errors, for callers that opt in. Real clients require all fields but `attempts`. */
export interface RouterMetadata {
  /** The first name of a model in the request; the router's default where it names none; `""`: none is known. */
  requested: string;
  /** How the model was found: by its id, by another name, or as a later one of `models`. */
  strategy: 'direct' | 'alias' | 'fallback';
  region: null;
  /** For people. */
  summary: string;
  /** Place of the attempt that answered, from 1; without an answer the number of attempts. */
  attempt: number;
  is_byok: false;
  /** `total` counts those that a filter excluded, too. */
  endpoints: { total: number; available: { provider: string; model: string; selected: boolean }[] };
  /** Absent: none was made. */
  attempts?: { provider: string; model: string; status: number }[];
  /** In the order of their ends, the plugins without effect first; absent: none applied. */
  pipeline?: PipelineEntry[];
}

/** The JSON of an object, with the metadata as its last field. @param metadata undefined: it was not asked for */
export function withMetadata(json: string, metadata: RouterMetadata | undefined): string {
  return metadata === undefined ? json : `${json.slice(0, -1)},"openrouter_metadata":${JSON.stringify(metadata)}}`;
}
