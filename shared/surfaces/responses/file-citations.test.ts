import { expect, it } from 'vitest';
import type { FileAnnotation } from '../../contracts/router/chat-completion.ts';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { addPart, emptyAnswer } from '../answer.ts';
import { annotationOf } from './annotation-of.ts';
import { responses } from './surface.ts';
import { toMessages } from './to-messages.ts';

const read: FileAnnotation = {
  type: 'file',
  file: {
    hash: 'a1'.repeat(32),
    name: 'a.pdf',
    content: [
      { type: 'text', text: 'Invoice 7' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
    ],
  },
};

it('what was read from a file comes back as it was stated, with the text of its answer', () => {
  const cited = annotationOf(read);
  expect(cited).toEqual({ type: 'file_citation', file_id: read.file.hash, filename: 'a.pdf', index: 0, content: read.file.content });
  const { content: _, ...cut } = cited;
  const source = { type: 'url_citation', url: 'https://a.example', title: 'A', start_index: 0, end_index: 1 };
  const input = [
    { role: 'user' as const, content: 'What is this?' },
    {
      type: 'message' as const,
      role: 'assistant' as const,
      content: [{ type: 'output_text' as const, text: 'An invoice.', annotations: [source, cut, cited] }],
    },
    { role: 'user' as const, content: 'Whose?' },
  ];
  expect(toMessages({ input })).toEqual([
    { role: 'user', content: 'What is this?' },
    { role: 'assistant', content: 'An invoice.', annotations: [read] },
    { role: 'user', content: 'Whose?' },
  ]);
});

it('what was read from a file makes no message of its own behind calls of tools, streamed or whole', () => {
  const parts: ProviderPart[] = [
    { type: 'tool-call-start', index: 0, id: 'call_1', name: 'find' },
    { type: 'annotation', annotation: read },
    { type: 'finish', reason: 'tool_calls', nativeReason: 'tool_calls' },
  ];
  const head = { id: 'gen-g1-1', created: 7, model: 'a/one', provider: 'East', request: { messages: [] }, now: () => 9 };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const answer = emptyAnswer();
  for (const part of parts) addPart(answer, part);
  expect(JSON.parse(responses.wholeBody(answer, head, usage)).output).toMatchObject([{ type: 'function_call' }]);
  const writer = responses.partWriter(head, emptyAnswer());
  expect(writer.parts(parts) + writer.done(answer, usage)).not.toContain('file_citation');
  expect(answer.annotations).toEqual([read]);
});
