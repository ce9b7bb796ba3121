// One part that cannot be drawn does not take the others with it.
import { Component, type ComponentChildren } from "preact";

interface Props {
  /** What is drawn: when it changes, it is tried again. */
  of: unknown;
  instead: ComponentChildren;
  children: ComponentChildren;
}

export class Guard extends Component<Props, { failed: boolean }> {
  state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  componentDidUpdate(before: Props) {
    if (this.state.failed && before.of !== this.props.of) this.setState({ failed: false });
  }

  render() {
    return this.state.failed ? this.props.instead : this.props.children;
  }
}
