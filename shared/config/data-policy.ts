import { z } from 'zod';
import type { ProviderConfig } from './router-config.ts';

/** What a provider does with requests and answers. */
export interface DataPolicy {
  trains: boolean;
  retains: boolean;
}

/** Not known counts as both. */
export const UNKNOWN_POLICY: DataPolicy = { trains: true, retains: true };
const NOTHING_KEPT: DataPolicy = { trains: false, retains: false };
const RETAINED: DataPolicy = { trains: false, retains: true };

/** Usual terms of vendors, by the profile that a block of the kind `openai-compatible` names. Others differ by account, are not known, or pass requests on (Ollama). */
export const usualPolicies: ReadonlyMap<string, DataPolicy> = new Map([
  ['openai', RETAINED],
  ['azure', RETAINED],
  ['azure-deployments', RETAINED],
  ['groq', RETAINED],
  ['xai', RETAINED],
  ['deepseek', { trains: true, retains: true }],
  ['vllm', NOTHING_KEPT],
  ['llama.cpp', NOTHING_KEPT],
]);

/** Kinds that answer in the worker's process. */
const inProcess: ReadonlySet<string> = new Set(['scripted', 'sentence-encoder']);

const stated = z.object({ kind: z.string(), profile: z.string().optional(), data_policy: z.object({ trains: z.boolean(), retains: z.boolean() }).optional() });

/** Of a provider's block, also in processes that read no more of it than this; a block with mistakes is of unknown policy. */
export function dataPolicyOf(block: ProviderConfig): DataPolicy {
  const { data, success } = stated.safeParse(block);
  if (!success) return UNKNOWN_POLICY;
  if (inProcess.has(data.kind)) return NOTHING_KEPT;
  const usual = data.kind === 'openai-compatible' && data.profile !== undefined ? usualPolicies.get(data.profile) : undefined;
  return data.data_policy ?? usual ?? UNKNOWN_POLICY;
}
