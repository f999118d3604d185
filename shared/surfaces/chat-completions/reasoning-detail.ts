import type { ReasoningDetail } from '../../contracts/router/chat-completion.ts';
import type { ReasoningBlock } from '../../contracts/router/provider-part.ts';
import { PLAIN_BLOCK, type ReasoningPiece } from '../answer.ts';

/** Of reasoning without blocks. Clients merge pieces with the same `index`. */
export function plainDetail(text: string): ReasoningDetail {
  return { type: 'reasoning.text', text, index: PLAIN_BLOCK.index, format: PLAIN_BLOCK.format };
}

/** Of a whole piece, or of one chunk of it. */
export function detailOf(piece: ReasoningPiece): ReasoningDetail {
  const names = namesOf(piece.block);
  switch (piece.type) {
    case 'text':
      return {
        type: 'reasoning.text',
        ...(piece.text === '' ? {} : { text: piece.text }),
        ...(piece.signature === null ? {} : { signature: piece.signature }),
        ...names,
      };
    case 'summary':
      return { type: 'reasoning.summary', summary: piece.text, ...names };
    case 'encrypted':
      return { type: 'reasoning.encrypted', data: piece.data, ...names };
  }
}

function namesOf({ index, id, format }: ReasoningBlock): Pick<ReasoningDetail, 'id' | 'index' | 'format'> {
  return id === null ? { index, format } : { id, index, format };
}
