import { Component, createElement, type FunctionComponent } from 'preact';

/** A component that renders again only when a property is another value. */
export function memo<Props extends object>(view: FunctionComponent<Props>): FunctionComponent<Props> {
  class Memo extends Component<Props> {
    override shouldComponentUpdate(next: Readonly<Props>): boolean {
      const now: Readonly<Props> = this.props;
      return (Object.keys(next) as (keyof Props)[]).some((name) => next[name] !== now[name]);
    }

    override render() {
      return createElement(view, this.props);
    }
  }
  return (props) => createElement(Memo, props);
}
