import { AIMessageChunk, HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { describe, expect, it } from 'vitest';
import { MODEL, useRouter } from './router-under-test.ts';
import * as answers from './upstream-answers.ts';

const router = useRouter();
const model = () => new ChatOpenAI({ model: MODEL, apiKey: router.apiKey, configuration: { baseURL: router.baseUrl }, maxRetries: 0 });
const asked = [new HumanMessage('How is the weather?')];

async function joined(stream: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  let whole: AIMessageChunk | null = null;
  for await (const chunk of stream) whole = whole === null ? chunk : whole.concat(chunk);
  return whole ?? new AIMessageChunk('');
}

describe('@langchain/openai', () => {
  it('reads an answer, whole and streamed, with its usage', async () => {
    router.upstream.replyWith({ chunks: answers.richAnswer });
    for (const message of [await model().invoke(asked), await joined(await model().stream(asked))]) {
      expect(message.text).toBe(answers.TEXT);
      expect(message.usage_metadata).toMatchObject({ input_tokens: 20, output_tokens: 12, total_tokens: 32 });
      expect(message.response_metadata).toMatchObject({ finish_reason: 'stop', system_fingerprint: 'fp_1' });
    }
  });

  it('has tool calls, whole and streamed', async () => {
    router.upstream.replyWith({ chunks: answers.toolAnswer });
    const bound = model().bindTools([answers.weatherTool]);
    for (const message of [await bound.invoke(asked), await joined(await bound.stream(asked))]) {
      expect(message.tool_calls).toMatchObject([
        { id: 'call_a', name: 'look', args: { at: 'sky' } },
        { id: 'call_b', name: 'listen', args: {} },
      ]);
    }
  });

  it('throws an error with its status before the first content', async () => {
    router.upstream.replyWith(answers.refusal);
    await expect(model().invoke(asked)).rejects.toMatchObject({ status: 429, code: 429 });
    await expect(model().stream(asked).then(joined)).rejects.toMatchObject({ status: 429, code: 429 });
  });

  it('gets what came before an error in the middle, and then the error', async () => {
    router.upstream.replyWith({ chunks: answers.brokenAnswer });
    let text = '';
    const reading = async () => {
      for await (const { content } of await model().stream(asked)) text += String(content);
    };
    await expect(reading()).rejects.toMatchObject({ code: 502 });
    expect(text).toBe('Half an ');
  });
});
