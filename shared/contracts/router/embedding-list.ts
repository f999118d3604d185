import type { Usage } from './chat-completion.ts';

/** Response of POST /api/v1/embeddings, in the order of the inputs. */
export interface EmbeddingList {
  object: 'list';
  /** The generation id. */
  id: string;
  model: string;
  provider: string;
  data: {
    object: 'embedding';
    index: number;
    /** Numbers, or base64 of 32-bit floats, little endian. */
    embedding: number[] | string;
  }[];
  usage: Pick<Usage, 'prompt_tokens' | 'total_tokens' | 'cost' | 'cost_details' | 'is_byok'>;
}
