const GENERATION_PREFIX = /^gen-/;
/** Of items of reasoning to which the upstream gave no id. */
const OWN_REASONING = 'rs_gen_';

/** Ids of the items of one response, which are the same in its stream and in its whole body. */
export function itemIdsOf(generationId: string) {
  const name = generationId.replace(GENERATION_PREFIX, '');
  return {
    message: `msg_${name}`,
    /** @param place the item's in the output */
    functionCall: (place: number) => `fc_${name}_${place}`,
    reasoning: (place: number) => `${OWN_REASONING}${name}_${place}`,
    image: (place: number) => `ig_${name}_${place}`,
  };
}

export type ItemIds = ReturnType<typeof itemIdsOf>;

/** The upstream's id of an item that a client sends back; null: it had none, or the client gives none. */
export function upstreamIdOf(id: string | null | undefined): string | null {
  return typeof id !== 'string' || id.startsWith(OWN_REASONING) ? null : id;
}
