import { z } from 'zod';
import type { ModerationSettings } from '#shared/config/plugin-settings.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallSignal } from '../../call-signal.ts';
import { type EngineDeps, openEngineClient, unavailable } from '../engine-client.ts';
import type { Flagged, OpenedModerator } from './types.ts';

/** Of one input: endpoints bound their tokens. Longer texts are checked in pieces. */
const MAX_INPUT_CHARS = 16_384;
/** Of one request to the endpoint. */
const MAX_INPUTS = 32;
const MAX_REQUEST_CHARS = 65_536;
/** Of all texts of a call: more would take minutes. */
const MAX_CHARS = 2 * 1_024 * 1_024;
const MAX_REASONS = 32;
const MAX_REASON_CHARS = 100;

const verdicts = z.object({
  results: z.array(z.object({ flagged: z.boolean(), categories: z.record(z.string(), z.unknown()).nullish() })),
});
type Verdict = z.infer<typeof verdicts>['results'][number];

interface Input {
  /** Piece of it. */
  input: string;
  /** The whole text. */
  text: string;
}

/** An endpoint that speaks POST /v1/moderations. */
export function openEndpointModerator(name: string, address: NonNullable<ModerationSettings['endpoint']>, deps: EngineDeps): OpenedModerator {
  const { url, api_key: key, model, timeout_ms: timeoutMs } = address;
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${deps.secret(key)}` };
  const client = openEngineClient({ name, url, headers, timeoutMs }, deps);

  async function verdictsOn(batch: readonly Input[], signal: CallSignal): Promise<Verdict[]> {
    const body = { ...(model === undefined ? {} : { model }), input: batch.map(({ input }) => input) };
    const { data } = verdicts.safeParse(await client.post(body, signal));
    if (data === undefined || data.results.length !== batch.length) throw unavailable(name, 'its answer is not one of POST /v1/moderations');
    return data.results;
  }

  return {
    name,
    async flaggedIn(texts, signal, param) {
      for (const batch of batchesOf(texts, param)) {
        const results = await verdictsOn(batch, signal);
        const at = results.findIndex(({ flagged }) => flagged);
        if (at !== -1) return flaggedOf(batch[at]?.text ?? '', results[at]);
      }
      return null;
    },
    close: () => client.close(),
  };
}

function flaggedOf(text: string, verdict: Verdict | undefined): Flagged {
  const categories = Object.entries(verdict?.categories ?? {}).flatMap(([category, applies]) =>
    applies === true ? [category.slice(0, MAX_REASON_CHARS)] : [],
  );
  return { text, reasons: categories.length === 0 ? ['flagged'] : categories.slice(0, MAX_REASONS) };
}

/** @throws `request.too_large`: none passes unread */
function batchesOf(texts: readonly string[], param: string): Input[][] {
  if (texts.reduce((sum, text) => sum + text.length, 0) > MAX_CHARS) {
    throw new SwitchyardError('request.too_large', `The texts of the request have more than ${MAX_CHARS} characters, which is too long for moderation`, {
      details: { param },
    });
  }
  const batches: Input[][] = [];
  let batch: Input[] = [];
  let chars = 0;
  for (const text of texts) {
    for (let start = 0; start < text.length; start += MAX_INPUT_CHARS) {
      const input = text.slice(start, start + MAX_INPUT_CHARS);
      if (batch.length === MAX_INPUTS || chars + input.length > MAX_REQUEST_CHARS) {
        batches.push(batch);
        batch = [];
        chars = 0;
      }
      batch.push({ input, text });
      chars += input.length;
    }
  }
  return batch.length === 0 ? batches : [...batches, batch];
}
