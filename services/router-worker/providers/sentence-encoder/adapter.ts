import { setImmediate as nextTick } from 'node:timers/promises';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { ProviderAdapter, VectorCall, Vectors } from '../provider.ts';
import { embed, textOf } from '../scripted/embed.ts';
import { encodableText } from './encodable-text.ts';
import type { Encoder } from './encoder.ts';

/** Of the model, which can't be asked for others. */
export const DIMENSIONS = 512;

export interface SentenceEncoderOptions {
  slug: string;
  name: string;
  encoder: Pick<Encoder, 'encode'>;
  /** Whether the packages of the model are there; read by the first call. */
  isInstalled(): boolean;
  log: Log;
}

/** Universal Sentence Encoder Lite in this process: English, without a network. Without its packages, vectors of the scripted model. */
export function sentenceEncoder({ slug, name, encoder, isInstalled, log }: SentenceEncoderOptions): ProviderAdapter {
  let scripted: boolean | null = null;
  // Once: the two kinds of vectors can't be compared.
  const isScripted = () => {
    if (scripted !== null) return scripted;
    scripted = !isInstalled();
    if (scripted) log.warn({ provider: slug }, 'the optional package @energetic-ai/embeddings is not installed: vectors are made from words and letters alone');
    return scripted;
  };
  return {
    slug,
    async stream() {
      throw new SwitchyardError('config.invalid', `${name} gives vectors and does not chat: its models need "embeddings" in the router's configuration`);
    },
    async embed(call, signal) {
      if (!isScripted()) return encodeAll(encoder, call, signal);
      await nextTick();
      signal.throwIfAborted();
      return embed({ inputs: call.inputs, dimensions: DIMENSIONS });
    },
    upstreamBody: ({ model, request }) => ({ ...request, model }),
  };
}

async function encodeAll(encoder: SentenceEncoderOptions['encoder'], { inputs }: VectorCall, signal: Parameters<Encoder['encode']>[1]): Promise<Vectors> {
  const vectors: Float32Array[] = [];
  let promptTokens = 0;
  for (const input of inputs) {
    const { vector, tokens } = await encoder.encode(encodableText(textOf(input)), signal);
    vectors.push(vector);
    promptTokens += tokens;
  }
  return { vectors, promptTokens };
}
