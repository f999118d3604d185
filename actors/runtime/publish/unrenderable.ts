/** An effect that this release can't render, however often it tries: it is reported at once. */
export class Unrenderable extends Error {}
