import { describe, expect, it } from 'vitest';
import { type answerForms, shapeName, shapeOf, traffics } from '../shape.mjs';
import { answersIn } from './answers.mjs';

/** The chunks of a stream of three tokens, parsed. */
function chunksIn(traffic: (typeof answerForms)[number], usage: boolean): Record<string, unknown>[] {
  const { token, end } = answersIn[traffic];
  const body = [0, 1, 2].map((number) => token(7, number, { usage })).join('') + end(3, { usage });
  return [...body.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json ?? ''));
}

describe.each(traffics)('the answers in %s traffic', (traffic) => {
  it('hold each token in one chunk, and the reason at the end', () => {
    const choices = chunksIn(traffic, false).flatMap((chunk) => chunk.choices);
    expect(choices.filter((choice) => /^7\.\d $/.test((choice as { delta: { content?: string } }).delta.content ?? ''))).toHaveLength(3);
    expect(choices.at(-1)).toMatchObject({ delta: {}, finish_reason: 'stop' });
  });

  it('hold usage in the last chunk, if it was asked for', () => {
    const counts = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
    expect(chunksIn(traffic, true).at(-1)).toMatchObject({ choices: [], usage: counts });
    expect(chunksIn(traffic, false).some((chunk) => 'usage' in chunk)).toBe(false);
    expect(JSON.parse(answersIn[traffic].whole(3).split('\r\n\r\n')[1] ?? '')).toMatchObject({ usage: counts });
  });

  it('are asked for by the path', () => {
    const shape = { tokens: 3, perSecond: 50, delayMs: 20, traffic };
    expect(shapeOf(`/${shapeName(shape)}/v1/chat/completions`)).toEqual(shape);
  });
});

describe('the answers in vendor traffic', () => {
  it('differ from chunk to chunk by more than the text, and say what OpenAI says beside it', () => {
    const [first, ...chunks] = chunksIn('vendor', true);
    expect(first).toMatchObject({ choices: [{ delta: { role: 'assistant', content: '' } }] });
    expect(new Set(chunks.map(({ obfuscation }) => obfuscation)).size).toBeGreaterThan(1);
    for (const chunk of chunks.slice(0, -1)) {
      expect(Object.keys(chunk)).toEqual(['id', 'object', 'created', 'model', 'service_tier', 'system_fingerprint', 'choices', 'usage', 'obfuscation']);
    }
    expect(chunks.at(-1)).toMatchObject({ usage: { prompt_tokens_details: { cached_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 0 } } });
  });
});

/** What a client reads of a choice, streamed or whole. */
interface Said {
  reasoning_content?: string;
  tool_calls?: { function: { name?: string; arguments: string } }[];
}

it('call a function with the tokens as its arguments', () => {
  const deltas = saidIn('tools');
  expect(deltas.flatMap(({ tool_calls = [] }) => tool_calls.map(({ function: { name } }) => name)).filter(Boolean)).toEqual(['find_order']);
  expect(deltas.flatMap(({ tool_calls = [] }) => tool_calls.map((call) => call.function.arguments)).join('')).toBe('7.0 7.1 7.2 ');
  const [choice] = JSON.parse(answersIn.tools.whole(2).split('\r\n\r\n')[1] ?? '').choices;
  expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { tool_calls: [{ function: { name: 'find_order', arguments: '0.0 0.1 ' } }] } });
});

it('reason with the tokens', () => {
  expect(
    saidIn('reasoning')
      .map(({ reasoning_content = '' }) => reasoning_content)
      .join(''),
  ).toBe('7.0 7.1 7.2 ');
  const [choice] = JSON.parse(answersIn.reasoning.whole(2).split('\r\n\r\n')[1] ?? '').choices;
  expect(choice).toMatchObject({ finish_reason: 'stop', message: { reasoning_content: '0.0 0.1 ' } });
});

/** The deltas of a stream of three tokens. */
function saidIn(form: (typeof answerForms)[number]): Said[] {
  return chunksIn(form, false).flatMap(({ choices }) => (choices as { delta: Said }[]).map(({ delta }) => delta));
}
