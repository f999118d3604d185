import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import type { Answer, ReasoningPiece } from '../answer.ts';

/** The parts of a whole answer in the order in which its response lists them: reasoning, text, sources, images, calls of tools. */
export function partsOf(answer: Answer): ProviderPart[] {
  const parts: ProviderPart[] = [];
  if (answer.reasoningPieces !== null) parts.push(...answer.reasoningPieces.flatMap(partsOfPiece));
  else if (answer.reasoning !== '') parts.push({ type: 'reasoning-delta', text: answer.reasoning });
  if (answer.text !== '') parts.push({ type: 'text-delta', text: answer.text, ...(answer.logprobs !== null && { logprobs: answer.logprobs }) });
  if (answer.refusal !== '') parts.push({ type: 'refusal-delta', text: answer.refusal });
  for (const annotation of answer.annotations ?? []) parts.push({ type: 'annotation', annotation });
  for (const url of answer.images ?? []) parts.push({ type: 'image', url });
  // `forEach` skips indexes that an upstream left empty.
  answer.toolCalls.forEach(({ id, function: { name, arguments: text } }, index) => {
    parts.push({ type: 'tool-call-start', index, id, name });
    if (text !== '') parts.push({ type: 'tool-call-delta', index, arguments: text });
  });
  return parts;
}

function partsOfPiece(piece: ReasoningPiece): ProviderPart[] {
  const { block } = piece;
  switch (piece.type) {
    case 'summary':
      return [{ type: 'reasoning-summary-delta', text: piece.text, block }];
    case 'encrypted':
      return [{ type: 'reasoning-encrypted', data: piece.data, block }];
    case 'text':
      return [
        ...(piece.text === '' ? [] : [{ type: 'reasoning-delta' as const, text: piece.text, block }]),
        ...(piece.signature === null ? [] : [{ type: 'reasoning-signature' as const, signature: piece.signature, block }]),
      ];
  }
}
