interface KindParameters {
  names: ReadonlySet<string>;
  /** Values of `service_tier`. Absent: any. */
  tiers?: readonly unknown[];
}

const EVERYWHERE = [
  ...['max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'tools', 'tool_choice'],
  ...['response_format', 'structured_outputs', 'reasoning', 'reasoning_effort'],
];

/**
 * By kind of provider, the parameters that its adapter has a counterpart of, for any of its models: workers filter by it, and gateways list by it. A kind that is not
 * here has all: `openai-compatible` passes on what it does not know, and `scripted` has no upstream.
 */
const PARAMETERS: ReadonlyMap<string, KindParameters> = new Map<string, KindParameters>([
  ['anthropic', { names: new Set([...EVERYWHERE, 'stop', 'top_k', 'verbosity', 'parallel_tool_calls', 'service_tier']), tiers: ['auto', 'default'] }],
  [
    'gemini',
    {
      names: new Set([...[...EVERYWHERE, 'stop', 'top_k', 'seed', 'presence_penalty', 'frequency_penalty'], ...['logprobs', 'top_logprobs', 'modalities']]),
    },
  ],
  ['bedrock', { names: new Set([...EVERYWHERE, 'stop', 'top_k', 'verbosity', 'service_tier']), tiers: ['auto', 'default', 'flex', 'priority'] }],
  ['responses', { names: new Set([...EVERYWHERE, 'logprobs', 'top_logprobs', 'parallel_tool_calls', 'service_tier', 'verbosity']) }],
]);

/**
 * Whether an adapter of the kind sends a parameter. No kind sends `n`: one answer is what every upstream is asked for.
 * @param value of the request; undefined: any that is sent
 */
export function sendsParameter(kind: string, name: string, value?: unknown): boolean {
  if (name === 'n') return false;
  const known = PARAMETERS.get(kind);
  if (known === undefined) return true;
  // What the APIs without this parameter do.
  if (name === 'parallel_tool_calls' && value === true) return true;
  if (name === 'service_tier' && value !== undefined && known.tiers?.includes(value) === false) return false;
  return known.names.has(name);
}

/** Whether the API of the kind does what a parameter asks for without having it: one without tiers has the plain one alone. */
export function isDoneWithout(kind: string, name: string, value: unknown): boolean {
  return name === 'service_tier' && value === 'default' && PARAMETERS.get(kind)?.names.has(name) === false;
}

/** Whether adapters of the kind send `provider_options`. */
export function takesOptions(kind: string): boolean {
  return kind === 'openai-compatible';
}

/** Null: also such as the router has no name for. */
export function parametersOfKind(kind: string): readonly string[] | null {
  const known = PARAMETERS.get(kind);
  return known === undefined ? null : [...known.names];
}
