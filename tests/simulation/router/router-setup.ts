import { routerConfig } from '../../../shared/config/router-config.ts';
import { worstCaseOf } from '../../../shared/credit/worst-case.ts';
import type { CallerKey } from '../../../shared/keys/caller-key.ts';

const MODEL = 'sim/one';
/** Of the router, and with the minute of a reservation what a schedule waits for. */
const TOTAL_MS = 30_000;
const MAX_TOKENS = 8;
/** Characters of a prompt: ten tokens. */
const PROMPT_CHARS = 40;
/** Bounds what a call with a file reserves: some keys have room for one. */
const CONTEXT_TOKENS = 100;
const FILE_EVERY = 4;
/** What is read of a file. */
export const FILE_TEXT = 'Twelve pencils';
/** Has more characters than what is read of it, as files do. */
const PDF = `data:application/pdf;base64,${Buffer.from('%PDF-1.7'.padEnd(FILE_TEXT.length)).toString('base64')}`;

/** Two endpoints of one model, at different prices. */
export const config = routerConfig.parse({
  providers: ['p1', 'p2'].map((slug) => ({ slug, name: slug, kind: 'simulated' })),
  models: [
    {
      id: MODEL,
      // A schedule is repeated by its seed, and the draw is seeded by ids that are new each time.
      order: 'file',
      endpoints: [
        { provider: 'p1', upstream_model: 'one', prices: { prompt: '1', completion: '2' }, context_length: CONTEXT_TOKENS },
        { provider: 'p2', upstream_model: 'one', prices: { prompt: '2', completion: '3' }, context_length: CONTEXT_TOKENS },
      ],
    },
  ],
  keys: [{ id: 'unused', key: `sha256:${'f'.repeat(64)}` }],
  timeouts: { total_ms: TOTAL_MS },
});

/** What a call of the simulation reserves. */
const CALL_NANO = worstCaseOf({ request: requestOf(1, false), models: config.models, defaultCompletionTokens: 1, maxTokens: null }).amountNano;

/** Calls of a key per minute, and tokens for two calls without a file. */
const CALLS_PER_MINUTE = 2;
const TOKENS_PER_MINUTE = 40;
/** So that a call says that it was counted with those of other gateways. */
const MANY_TOKENS = 1_000_000;

/** Keys without a limit, with room for a few calls, with a limit per day, of the agent, and with limits per minute. */
export const keys = {
  free: keyOf('free', null, null),
  tight: keyOf('tight', 3.5 * CALL_NANO, null),
  daily: keyOf('daily', 6 * CALL_NANO, 'daily'),
  agent: keyOf('agent', 5 * CALL_NANO, null),
  rated: { ...keyOf('rated', null, null), rates: { requestsPerMinute: CALLS_PER_MINUTE, tokensPerMinute: MANY_TOKENS, callsAtOnce: null } },
  metered: { ...keyOf('metered', null, null), rates: { requestsPerMinute: null, tokensPerMinute: TOKENS_PER_MINUTE, callsAtOnce: null } },
};

function keyOf(id: string, limitNano: number | null, limitReset: CallerKey['limitReset']): CallerKey {
  const rates = { requestsPerMinute: null, tokensPerMinute: null, callsAtOnce: null };
  const hash = Buffer.from(id).toString('hex').padEnd(64, '0');
  return { id, hash, label: id, isManagement: false, disabled: false, expiresAtMs: null, isOauth: false, limitNano, limitReset, rates };
}

/** The number is found again where the request arrives. */
export function requestOf(number: number, stream: boolean) {
  const said = { role: 'user' as const, content: `call ${number} `.padEnd(PROMPT_CHARS, '.') };
  const plain = { model: MODEL, messages: [said], max_tokens: MAX_TOKENS, stream };
  if (!hasFile(number)) return plain;
  const file = { role: 'user' as const, content: [{ type: 'file' as const, file: { file_data: PDF } }] };
  return { ...plain, messages: [said, file], plugins: [{ id: 'file-parser' as const, pdf: { engine: 'pdf-text' } }] };
}

/** Whether a call has a file, which its worker reads. */
export function hasFile(number: number): boolean {
  return number % FILE_EVERY === 0;
}

export function numberIn(content: unknown): number {
  return Number(/^call (\d+) /.exec(String(content))?.[1]);
}
