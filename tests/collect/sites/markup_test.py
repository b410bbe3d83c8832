"""HTML of comments to text."""

import pytest

from pipeline.collect.sites.markup import extract_text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("  两端空白 ", "两端空白"), ("好<span class='url-icon'><img alt=[doge] src='x.png'></span>", "好[doge]"),
        ('<img alt="[doge]"/><img src="x.png">', "[doge]"), ("<p>一</p><p>二</p>", "一\n二"),
        ("一<br><br/>二<br/>三", "一\n二\n三"), ("<br>一", "一"), ("<ul><li>一</li><li>二</li></ul>", "一\n二"),
        ("看 <a class='comment_img' href='x'>查看图片</a><a>网页链接</a>", "看"),
        ("<a href='/n/x'>@样例甲</a>:好", "@样例甲:好"),
        ("A&amp;B &lt;三 &quot;稳&quot; &#128054;", 'A&B <三 "稳" 🐶'), ("&lt;b&gt;", "<b>"),
        ("<b>粗<i>斜</b>体", "粗斜体"), ("<script>好<b>真", "好真"), ("<style>好", "好"), ("<![CDATA[好]]>", "好"),
        *((t, t) for t in ("", "没有标签", "我<3你", "a<b c", "1 < 2 & 3 > 2", "<?好?>真", "<doge>真行")),
        ("<!DOCTYPE html><emoji id=3>好", "好"),
    ],
)  # fmt: skip
def test_text_of(markup: str, text: str) -> None:
    """Alt texts and entities become text, breaks lines, the site's own labels and tags nothing."""
    assert extract_text(markup) == text
