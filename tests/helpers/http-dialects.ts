import { openAnthropicUpstream } from '../upstreams/anthropic-upstream.ts';
import { openBedrockUpstream } from '../upstreams/bedrock-upstream.ts';
import { openGeminiUpstream } from '../upstreams/gemini-upstream.ts';
import type { RecordingUpstream } from '../upstreams/loopback-upstream.ts';
import { openOpenAiUpstream } from '../upstreams/openai-upstream.ts';
import { openResponsesUpstream } from '../upstreams/responses-upstream.ts';

/** The dialects of vendors' HTTP APIs. */
export const DIALECTS = ['openai-compatible', 'anthropic', 'gemini', 'bedrock', 'responses'] as const;
export type DialectName = (typeof DIALECTS)[number];

/** Of each vendor a model that takes what tests send. */
export const UPSTREAM_MODELS: Readonly<Record<DialectName, string>> = {
  'openai-compatible': 'loopback-model',
  anthropic: 'claude-opus-4-6',
  gemini: 'gemini-3-flash',
  bedrock: 'eu.anthropic.claude-opus-4-6-v1',
  responses: 'gpt-5',
};

const openers: Readonly<Record<DialectName, () => Promise<RecordingUpstream>>> = {
  'openai-compatible': () => openOpenAiUpstream(),
  anthropic: openAnthropicUpstream,
  gemini: openGeminiUpstream,
  bedrock: openBedrockUpstream,
  responses: openResponsesUpstream,
};

/** An upstream on loopback that speaks the dialect. */
export function openUpstreamOf(dialect: DialectName): Promise<RecordingUpstream> {
  return openers[dialect]();
}
