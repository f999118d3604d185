import { fromWireId } from '../../../bus/nats/connection/wire-id.ts';
import type { Answer, StreamStore } from '../cluster/model-stream.ts';
import type { ModelUsage } from './model-usage.ts';

const FULL: Answer = { error: { code: 503, err_code: 10_077, description: 'maximum bytes exceeded' } };

/** The log of usage records, as a stream of the broker. @param isFull asked for each message */
export function usageStream(usage: ModelUsage, isFull: () => boolean): StreamStore {
  return {
    // Sequences of records have no reader.
    sequenceOf: (wireId) => (usage.has(wireId) ? 1 : null),
    store({ wireId, body }) {
      if (isFull()) return FULL;
      usage.append(fromWireId(wireId), body, wireId);
      return { seq: 1 };
    },
  };
}
